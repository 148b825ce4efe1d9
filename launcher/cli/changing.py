"""changing: what commands that change hosts have in common: a run, its lock, approval, how it ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from launcher.cli.context import connected
from launcher.cli.gate import Gate
from launcher.cli.interrupt import Interrupt
from launcher.cli.output import View
from launcher.cli.running import Running
from launcher.model.finding import Finding
from launcher.model.plan import Plan
from launcher.model.problem import Exit, Problem
from launcher.model.revision import Entry
from launcher.model.wish import Wanted

if TYPE_CHECKING:
    from launcher.flows.run import Run
    from launcher.remote.connections import Connections
    from launcher.remote.fleet import Fleet


@dataclass(slots=True)
class Work:
    """A command at work on hosts that it has locked."""

    fleet: Fleet
    running: Running
    interrupt: Interrupt
    """Was ctrl-C pressed?"""
    view: View
    yes: bool
    """Somebody has agreed before any plan was shown."""
    agreed: bool = False
    """So they have to the plan."""
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    code: Exit = Exit.DONE

    def run(self, *, why: str = "") -> Run:
        """The run, as flows know it; `why` where nobody has said one."""
        return self.running.told(self.interrupt, why=why)

    def approval(self, wanted: Wanted, gate: Gate | None = None) -> Callable[[Plan], bool]:
        """Shows the plan, refuses what `gate` does, asks where nobody has agreed yet, and keeps it."""
        from launcher.cli.operate import drained_lines, title

        def approve(planned: Plan) -> bool:
            self.view.plan(planned, title=title(wanted), remark=drained_lines(wanted))
            if gate:
                gate.ask(self.fleet, wanted, planned, self.running.listen)
            return self.approved(planned, ask=bool(planned))

        return approve

    def approved(self, planned: Plan, *, ask: bool, question: str = "Apply?") -> bool:
        """May a plan that was shown be applied? Nobody is asked who has agreed already; it is kept then."""
        from launcher.cli.operate import asked

        if ask and not (self.yes or asked(question)):
            return False
        self.agreed = True
        self.running.plan(planned)
        self.interrupt.changes_begin()
        return True

    def keeper(self, present: Wanted) -> Callable[[Entry], Wanted]:
        """Reads what was wanted before, on the hosts of the `present`, into the run's folder."""
        from launcher.flows.revisions import wanted_of

        def kept(entry: Entry) -> Wanted:
            folder = self.running.journal.folder / entry.revision
            return wanted_of(self.fleet, entry, present.wish, folder, environment=os.environ)

        return kept

    def ended(
        self,
        findings: Sequence[Finding] = (),
        failed: Sequence[Problem] = (),
        *,
        code: Exit = Exit.DONE,
        because: Sequence[Problem] = (),
    ) -> None:
        """What was found, and what went wrong beside that: the run's end in its journal, and for people.

        `code`, and what it is `because` of: how it ends where nothing went wrong.
        """
        wrong = (*failed, *(f.problem for f in findings if f.problem))
        self.findings = tuple(findings)
        self.problems = (*wrong, *because)
        self.code = Exit.HOSTS_FAILED if wrong else code
        if self.interrupt():
            self.code = Exit.INTERRUPTED


@contextmanager
def changing(
    wanted: Wanted,
    view: View,
    *,
    flow: str,
    why: str,
    lock: Collection[str],
    yes: bool,
    over: Connections | None = None,
) -> Iterator[Work]:
    """The frame of such a command: what happens in it is in the run's journal, and shown once it has ended.

    Hosts of `lock` are this run's meanwhile, reached `over` connections there are already, or anew. Without
    any, the command locks what it needs once it knows.
    """
    with Running(wanted.wish, view, flow=flow, why=why) as running:
        interrupt = Interrupt(running.left)
        with connected(wanted, over=over, run_id=running.id, why=why, lock=lock) as fleet:
            work = Work(fleet, running, interrupt, view, yes)
            yield work
        running.ended(work.code, work.problems)
    view.findings(work.findings)
    view.problems(work.problems)
