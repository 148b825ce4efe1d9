"""runs: what was done, by whom, with which result; one run told again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from launcher.record import RunStory, read_run, read_runs, runs_folder
from launcher.record.report import result_of


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run of a list."""

    id: str
    cluster: str
    who: str
    started: str
    result: str
    why: str


def list_runs(environment: Mapping[str, str], *, cluster: str = "") -> tuple[RunLine, ...]:
    """Runs of a cluster, or of all, newest first."""
    found = reversed(read_runs(runs_folder(environment)))
    return tuple(
        RunLine(run["id"], run["cluster"], run["who"], run["started"], result_of(run), run.get("why", ""))
        for run in found
        if cluster in ("", run["cluster"])
    )


def show_run(environment: Mapping[str, str], name: str) -> RunStory:
    """One run by its name, or `last`."""
    return read_run(runs_folder(environment), name)
