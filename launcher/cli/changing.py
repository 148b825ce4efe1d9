"""changing: what commands that change hosts have in common: a run, its lock, approval, how it ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from launcher.cli.context import connected
from launcher.cli.interrupt import Interrupt
from launcher.cli.output import View
from launcher.cli.running import Running
from launcher.execute.hands import Hands
from launcher.flows.preflight import Report, no_preflight
from launcher.model.finding import Finding
from launcher.model.plan import Plan
from launcher.model.problem import Exit, Problem
from launcher.model.revision import Entry
from launcher.model.wish import Wanted
from launcher.rollout.planning import Proposal

if TYPE_CHECKING:
    from launcher.remote.connections import Connections
    from launcher.remote.fleet import Fleet
    from launcher.rollout.run import Run


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
    checks: Callable[[Hands, Proposal], Report] = no_preflight
    first: Callable[[], None] | None = None
    """What is done on this machine before hosts are changed."""
    findings: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    code: Exit = Exit.DONE

    def run(self, *, why: str = "") -> Run:
        """The run, as flows know it; `why` where nobody has said one."""
        return self.running.told(self.interrupt, why=why)

    def preflight(self, fleet: Hands, proposal: Proposal) -> Report:
        """What the command's preflight says."""
        return self.checks(fleet, proposal)

    def show(self, proposal: Proposal, report: Report) -> None:
        """The plan, the order of its moves, and what is to be known before."""
        from launcher.cli.preview import show

        show(self.view, proposal, report)

    def agrees(self, proposal: Proposal) -> bool:
        """Ask where nobody has agreed yet; what was agreed to is kept, and done first where it is of this
        machine."""
        if not self.approved(proposal.plan, ask=bool(proposal.plan or self.first)):
            return False
        if self.first:
            self.first()
        return True

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
        return keeper(self.fleet, present, self.running.journal.folder)

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
        found = (f.problem for f in findings if f.problem)
        wrong = (*failed, *(problem for problem in found if problem not in failed))
        self.findings = tuple(findings)
        self.problems = (*wrong, *because)
        self.code = Exit.HOSTS_FAILED if wrong else code
        if self.interrupt():
            self.code = Exit.INTERRUPTED


def keeper(fleet: Fleet, present: Wanted, folder: Path) -> Callable[[Entry], Wanted]:
    """Reads what was wanted before, on the hosts of the `present`, into a folder."""
    from launcher.flows.revisions import wanted_of

    return lambda entry: wanted_of(
        fleet, entry, present.wish, folder / entry.revision, environment=os.environ
    )


@contextmanager
def changing(
    wanted: Wanted,
    view: View,
    *,
    flow: str,
    why: str,
    yes: bool,
    lock: Collection[str] = (),
    over: Connections | None = None,
    checks: Callable[[Hands, Proposal], Report] = no_preflight,
    first: Callable[[], None] | None = None,
) -> Iterator[Work]:
    """The frame of such a command: what happens in it is in the run's journal, and shown once it has ended.

    Hosts of `lock` are this run's meanwhile, reached `over` connections there are already, or anew. Without
    any, the command locks what it needs once it knows.
    """
    with Running(wanted.wish, view, flow=flow, why=why) as running:
        interrupt = Interrupt(running.left)
        with connected(wanted, over=over, run_id=running.id, why=why, lock=lock) as fleet:
            work = Work(fleet, running, interrupt, view, yes, checks=checks, first=first)
            yield work
        running.ended(work.code, work.problems)
    view.findings(work.findings)
    view.problems(work.problems)
