"""Drills being done: hosts proven to be a sandbox's, each case under its load, its runbook run as typed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from launcher.cli.changing import Work, changing
from launcher.cli.context import deployment_of
from launcher.cli.interrupt import stop_on_signal
from launcher.cli.output import View
from launcher.cli.running import Running
from launcher.cli.statustext import status_text
from launcher.flows import drill as flow
from launcher.flows.drill import Case
from launcher.flows.drill_run import Outcome, Stage, await_settled, run_case
from launcher.flows.runbook import Move
from launcher.health.steady import SteadyLoad
from launcher.load.data import Data, roots_of
from launcher.load.drills import read_stand_ins
from launcher.model.drill import Drill
from launcher.model.problem import InputError, Problem
from launcher.model.wish import Wanted
from launcher.sandbox import Sandbox, lock

# guards forget a try when an epoch has been ready for `settled_s` of the layout
SETTLED_WITHIN_S = 300.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says."""

    wanted: Wanted
    directory: Path
    """Of the sandbox."""
    data_dir: Path | None
    why: str
    per_second: float
    request_within_s: float


@contextlib.contextmanager
def stage_of(asked: Asked, view: View) -> Iterator[tuple[Stage, Work]]:
    """The hosts, proven to be a sandbox's, without faults of an earlier drill; one run of drills at a time.
    InputError where they are none."""
    wanted, deployment, sandbox = asked.wanted, deployment_of(asked.wanted), Sandbox(asked.directory)
    inventory = wanted.wish.inventory
    if inventory.front.closed or not deployment.fronts:
        what = "drills ask the front as users do, over HTTP and without a key"
        raise InputError(Problem(what, inventory.path, do="have a router, and leave out `front:`"))
    stand_ins = read_stand_ins(Data(roots_of(asked.data_dir)))
    ground = flow.Ground(flow.by_address(inventory.hosts, sandbox), stand_ins)
    wait = partial(view.say, "waiting for another run of drills")
    with (
        changing(wanted, view, flow=flow.FLOW, why=asked.why, lock=(), yes=True) as work,
        lock.held(asked.directory / "drill.lock", wait=wait),
    ):
        stop_on_signal()  # what is broken here is mended on the way out
        flow.mend(ground)
        flow.prove(work.fleet, inventory.hosts, ground, sandbox)
        book = Book(asked, work.running)
        if book.begun.exists():  # it was killed, and guards may have given up on what it had broken
            book.repair()
        listen = work.running.listen
        stage = Stage(work.fleet, wanted, deployment, ground, listen, status_text, book.run, asked.data_dir)
        try:
            yield stage, work
        finally:
            flow.mend(ground)


def cases_of(stage: Stage, chosen: Sequence[tuple[Drill, str]], *, named: bool) -> list[Case]:
    """Every spot of every drill. InputError where one that was `named` has none."""
    now = stage.look()
    found: list[Case] = []
    for drill, host in chosen:
        spots = flow.cases_of(drill, stage.deployment, now)
        here = [c for c in spots if host in ("", c.host)]
        if named and not here:
            what = f"{drill.id} has no spot {f'on {host}' if host else 'in this deployment'}"
            known = ", ".join(c.host for c in spots) or "none"
            raise InputError(Problem(what, why=f"its spots: {known}", do="dsv32-launch drill --list"))
        found += here
    return found


def one(stage: Stage, case: Case, asked: Asked, running: Running) -> Outcome:
    """One case from what serves to what serves. LauncherError where it does not serve before."""
    book = Book(asked, running)
    await_settled(stage, within_s=SETTLED_WITHIN_S)
    book.begun.touch()
    load = SteadyLoad(
        stage.deployment.fronts[0].url,
        stage.deployment.served_name,
        per_second=asked.per_second,
        within_s=asked.request_within_s,
        nonce=f"{running.id} {case.title}",
    )
    load.learn()
    try:
        return run_case(stage, case, load)
    finally:
        flow.mend(stage.ground)
        if not stage.look().serving:
            book.repair()
        book.begun.unlink()


@dataclass(frozen=True, slots=True)
class Book:
    """Runs runbooks of cases; what their commands print goes into the run's folder."""

    asked: Asked
    running: Running

    def run(self, case: Case, lift: Callable[[], None]) -> Problem | None:
        """The runbook of the case, by the code of `runbook run`; what did not go well."""
        from launcher.cli.output import choose
        from launcher.cli.runbookrun import Doing, do_all
        from launcher.cli.runbooks import planned_of, read_books
        from launcher.flows.runbook import digest_of

        wanted, books = self.asked.wanted, read_books(self.asked.data_dir)
        target = self._target(case, books[case.drill.runbook].target)
        book, scope, _, planned = planned_of(case.drill.runbook, target, wanted, books, must=True)

        def by_hand(move: Move) -> bool:
            if move.id.split()[0] == str(case.drill.lift_at):
                lift()
            return True

        with self._printing(case.title):
            doing = Doing(
                book=book,
                books=books,
                scope=scope,
                wanted=wanted,
                running=self.running,
                view=choose(json_lines=False),
                planned=planned,
                data_dir=self.asked.data_dir,
                digest=digest_of(planned),
                by_hand=by_hand,
                yes=True,
                json_lines=False,
            )
            _, problems = do_all(doing, None)
        stop_on_signal()
        return problems[0] if problems else None

    @property
    def begun(self) -> Path:
        """There while a case is being done."""
        return self.asked.directory / "drill.begun"

    def repair(self) -> None:
        """`up`, where a drill has left what does not serve."""
        from launcher.cli.app import app

        words = ["up", self.asked.wanted.wish.inventory.path, "--yes", "-m", "after a drill"]
        words += ["--data-dir", str(self.asked.data_dir)] if self.asked.data_dir else []
        with self._printing("up"):
            app(words, prog_name="dsv32-launch", standalone_mode=False)
        stop_on_signal()

    @contextlib.contextmanager
    def _printing(self, title: str) -> Iterator[None]:
        path = self.running.journal.folder / f"{title.replace(' ', '-')}.txt"
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(path.open("a", encoding="utf-8"))
            stack.enter_context(contextlib.redirect_stdout(file))
            stack.enter_context(contextlib.redirect_stderr(file))
            yield

    def _target(self, case: Case, kind: str) -> str:
        return {"instance": case.instance, "host": case.host, "pool": case.pool, "fleet": ""}[kind]
