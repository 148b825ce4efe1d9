"""The commands that take an instance away from requests, and give it back: drain, undrain."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from typing import Annotated

import typer

from launcher.cli.options import DataDir, InventoryOption, JsonLines, Why, Yes
from launcher.model.deployment import Drained
from launcher.model.problem import InputError, Problem

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
    from launcher.cli.changing import changing
    from launcher.cli.context import deployment_of, read_wanted
    from launcher.cli.operate import approval_possible
    from launcher.cli.output import choose
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
    lock = routing(wanted.deployment)
    with changing(wanted, view, flow="drain", why=why, lock=lock, yes=yes) as work:
        drained = flow.drained_too(work.fleet, wanted, entry, below_minimum=below_minimum)
        here, run = flow.of_routers(wanted, drained), work.run()
        outcome = flow.switch(work.fleet, here, work.approval(here), run)
        if outcome and outcome.problems:
            work.ended(failed=outcome.problems)
        elif outcome:
            work.ended([flow.await_idle(work.fleet, here, instance, run, within_s=within_s)])
    raise typer.Exit(work.code)


def undrain(
    target: Target,
    why: Why = "",
    inventory: InventoryOption = None,
    yes: Yes = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Send requests to a drained instance again."""
    from launcher.cli.changing import changing
    from launcher.cli.context import deployment_of, read_wanted
    from launcher.cli.operate import approval_possible
    from launcher.cli.output import choose
    from launcher.flows import drain as flow
    from launcher.flows.drained import drained_on
    from launcher.flows.targets import routing

    approval_possible(yes=yes)
    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    flow.instance_of(deployment_of(wanted), target)
    lock = routing(wanted.deployment)
    with changing(wanted, view, flow="undrain", why=why, lock=lock, yes=yes) as work:
        drained = tuple(d for d in drained_on(work.fleet, wanted) if d.instance != target)
        here = flow.of_routers(wanted, drained)
        outcome = flow.switch(work.fleet, here, work.approval(here), work.run())
        work.ended(failed=outcome.problems if outcome else ())
    raise typer.Exit(work.code)
