"""Running: one run that may change hosts, with its journal; whatever happens, the journal is ended."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from launcher.cli.output import View
from launcher.model.plan import Plan
from launcher.model.problem import Exit, LauncherError, Problem
from launcher.model.run import Event
from launcher.model.wish import Wish
from launcher.record import Journal, open_journal, runs_folder
from launcher.rollout.run import Run


class BugInRunError(Exception):
    """An exception that is a bug of ours, with its traceback saved in the run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(str(path))


class Running:
    """Tells the journal and the view of each event, and ends the journal."""

    def __init__(self, wish: Wish, view: View, *, flow: str, why: str = "") -> None:
        """Opens the run's folder; `why`: what it is for."""
        self._view: View | None = view
        self._exit_code = Exit.DONE
        self._problems: Sequence[Problem] = ()
        self.journal: Journal = open_journal(
            runs_folder(os.environ),
            flow=flow,
            cluster=wish.inventory.cluster,
            argv=sys.argv[1:],
            data_digest=wish.data_digest,
            why=why,
            secrets=wish.secrets.values(),
        )

    @property
    def id(self) -> str:
        """The run's name."""
        return self.journal.run.id

    def listen(self, event: Event) -> None:
        """Write it down, then show it; hosts are not left half changed because nobody listens any more."""
        self.journal(event)
        if self._view:
            try:
                self._view.event(event)
            except OSError:  # `| head`, a terminal that went away, a full disk
                self._view = None

    def told(self, interrupted: Callable[[], bool], *, why: str = "") -> Run:
        """The run, as flows know it; `why` where nobody has said one."""
        record = self.journal.run
        return Run(
            id=record.id,
            listener=self.listen,
            save_log=self.journal.save_log,
            interrupted=interrupted,
            who=record.who,
            when=record.started[:19] + "Z",
            why=record.why.strip() or why,
            flow=record.flow,
        )

    def plan(self, plan: Plan) -> None:
        """Keep the plan that was approved."""
        self.journal.plan(plan)

    def ended(self, exit_code: Exit, problems: Sequence[Problem]) -> None:
        """How it ended, as far as the flow itself knows."""
        self._exit_code, self._problems = exit_code, problems

    def left(self) -> None:
        """The user pressed ctrl-C before anything was changed: the process ends now."""
        self.journal.end(Exit.INTERRUPTED, ())

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, LauncherError):
            self._exit_code, self._problems = error.exit_code, error.problems
        elif error is not None:
            self._exit_code = Exit.HOSTS_FAILED
        self.journal.end(self._exit_code, self._problems)
        if isinstance(error, Exception) and not isinstance(error, (LauncherError, BrokenPipeError)):
            path = self.journal.folder / "traceback.txt"
            path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
            raise BugInRunError(path) from error
