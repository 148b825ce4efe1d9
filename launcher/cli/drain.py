"""The commands that take an instance away from requests, and give it back: drain, undrain."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.options import DataDir, InventoryOption, JsonLines, Why, Yes
from launcher.model.deployment import Drained
from launcher.model.problem import Exit, InputError, Problem

if TYPE_CHECKING:
    from launcher.cli.output import View
    from launcher.cli.running import Running
    from launcher.model.finding import Finding
    from launcher.model.plan import Plan
    from launcher.model.wish import Wanted

Target = Annotated[str, typer.Argument(metavar="INSTANCE", help="An instance, as `status` shows it.")]


def drain(
    target: Target,
    why: Why = "",
    inventory: InventoryOption = None,
    below_minimum: Annotated[
        bool, typer.Option("--below-minimum", help="Even if its pool has too few others that serve.")
    ] = False,
    within_s: Annotated[
        float, typer.Option("--within", metavar="S", min=0, help="Seconds to wait for what it has begun.")
    ] = 900.0,
    yes: Yes = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Keep requests from an instance until `undrain`, and wait until it has none. No request fails."""
    from launcher.cli.context import connected, deployment_of, read_wanted
    from launcher.cli.interrupt import Interrupt
    from launcher.cli.operate import approval_possible
    from launcher.cli.output import choose
    from launcher.cli.running import Running
    from launcher.flows import drain as flow
    from launcher.flows.targets import routing
    from launcher.record import person

    if not why.strip():
        raise InputError(Problem("no reason is given", "--why", do=f'drain {target} -m "what it is for"'))
    approval_possible(yes=yes)
    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    instance = flow.instance_of(deployment_of(wanted), target)
    when = datetime.now(timezone.utc).isoformat(timespec="seconds")
    entry = Drained(target, person(os.environ), when, why.strip())
    with Running(wanted.wish, view, flow="drain", why=why) as run:
        interrupt = Interrupt(run.left)
        with connected(wanted, run_id=run.id, why=why, lock=routing(wanted.deployment)) as fleet:
            drained = flow.drained_too(fleet, wanted, entry, below_minimum=below_minimum)
            here = flow.of_routers(wanted, drained)
            approve = approval(run, view, here, yes=yes, begin=interrupt.changes_begin)
            outcome = flow.switch(fleet, here, approve, run.listen, interrupted=interrupt)
            findings: tuple[Finding, ...] = ()
            if outcome and not outcome.problems:
                findings = (
                    flow.await_idle(
                        fleet, here, instance, run.listen, within_s=within_s, interrupted=interrupt
                    ),
                )
        problems = (*(outcome.problems if outcome else ()), *(f.problem for f in findings if f.problem))
        code = Exit.HOSTS_FAILED if problems else Exit.DONE
        run.ended(code, problems)
    view.findings(findings)
    view.problems(problems)
    raise typer.Exit(code)


def undrain(
    target: Target,
    why: Why = "",
    inventory: InventoryOption = None,
    yes: Yes = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Send requests to a drained instance again."""
    from launcher.cli.context import connected, deployment_of, read_wanted
    from launcher.cli.interrupt import Interrupt
    from launcher.cli.operate import approval_possible
    from launcher.cli.output import choose
    from launcher.cli.running import Running
    from launcher.flows import drain as flow
    from launcher.flows.drained import drained_on
    from launcher.flows.targets import routing

    approval_possible(yes=yes)
    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    flow.instance_of(deployment_of(wanted), target)
    with Running(wanted.wish, view, flow="undrain", why=why) as run:
        interrupt = Interrupt(run.left)
        with connected(wanted, run_id=run.id, why=why, lock=routing(wanted.deployment)) as fleet:
            drained = tuple(d for d in drained_on(fleet, wanted) if d.instance != target)
            here = flow.of_routers(wanted, drained)
            approve = approval(run, view, here, yes=yes, begin=interrupt.changes_begin)
            outcome = flow.switch(fleet, here, approve, run.listen, interrupted=interrupt)
        problems = outcome.problems if outcome else ()
        code = Exit.HOSTS_FAILED if problems else Exit.DONE
        run.ended(code, problems)
    view.problems(problems)
    raise typer.Exit(code)


def approval(
    run: Running, view: View, wanted: Wanted, *, yes: bool, begin: Callable[[], None]
) -> Callable[[Plan], bool]:
    """Shows the plan, asks where nobody has said yes yet, and keeps what was approved."""
    from launcher.cli.operate import asked, drained_lines, title

    def approve(planned: Plan) -> bool:
        view.plan(planned, title=title(wanted), remark=drained_lines(wanted))
        if planned and not (yes or asked("Apply?")):
            return False
        run.plan(planned)
        begin()
        return True

    return approve
