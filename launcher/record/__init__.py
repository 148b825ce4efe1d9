"""What was done, by whom, with which result: one folder a run."""

from launcher.record.journal import Journal, open_journal, runs_folder
from launcher.record.person import person
from launcher.record.runs import RunStory, read_run, read_runs

__all__ = ["Journal", "RunStory", "open_journal", "person", "read_run", "read_runs", "runs_folder"]
