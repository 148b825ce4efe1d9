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
    from launcher.flows.drain import drain as flow
    from launcher.flows.drain import instance_of
    from launcher.record import person
    from launcher.rollout.planning import Goal

    if not why.strip():
        raise InputError(Problem("no reason is given", "--why", do=f'drain {target} -m "what it is for"'))
    approval_possible(yes=yes)
    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    deployment = deployment_of(wanted)
    instance_of(deployment, target)
    when = datetime.now(timezone.utc).isoformat(timespec="seconds")
    entry, goal = (
        Drained(target, person(os.environ), when, why.strip()),
        Goal(wanted, deployment.routing_hosts),
    )
    with changing(wanted, view, flow="drain", why=why, yes=yes) as work:
        result = flow(
            work.fleet, goal, entry, work, work.run(), below_minimum=below_minimum, within_s=within_s
        )
        work.ended(result.findings, result.failed)
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
    from launcher.flows.drain import instance_of
    from launcher.flows.drain import undrain as flow
    from launcher.rollout.planning import Goal

    approval_possible(yes=yes)
    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    deployment = deployment_of(wanted)
    instance_of(deployment, target)
    goal = Goal(wanted, deployment.routing_hosts)
    with changing(wanted, view, flow="undrain", why=why, yes=yes) as work:
        result = flow(work.fleet, goal, target, work, work.run())
        work.ended(result.findings, result.failed)
    raise typer.Exit(work.code)
