"""The command that starts instances anew: restart."""

from __future__ import annotations

from typing import Annotated

import typer

from launcher.cli.options import (
    BelowMinimum,
    DataDir,
    DryRun,
    IdleWithin,
    InventoryOption,
    JsonLines,
    Why,
    Yes,
)
from launcher.rollout.situation import Order


def restart(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="An instance, a pool, a host, `router`, or `all`.")
    ],
    rolling: Annotated[
        bool, typer.Option("--rolling", help="One instance after the other; else all at once.")
    ] = False,
    canary: Annotated[
        bool, typer.Option("--canary", help="One instance first; the others once it has answered every pair.")
    ] = False,
    why: Why = "",
    inventory: InventoryOption = None,
    below_minimum: BelowMinimum = False,
    within_s: IdleWithin = 300.0,
    dry_run: DryRun = False,
    yes: Yes = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Drain, start anew as a whole, wait until ready, give back. No request fails where others serve."""
    from launcher.cli.changing import changing
    from launcher.cli.context import connected, deployment_of, read_wanted
    from launcher.cli.operate import approval_possible
    from launcher.cli.output import choose
    from launcher.cli.preview import dry_run as preview
    from launcher.flows.preflight import no_preflight
    from launcher.flows.restart import named_by, restart_goal
    from launcher.flows.restart import restart as flow
    from launcher.rollout.planning import propose_restart
    from launcher.rollout.situation import Options

    approval_possible(yes=yes or dry_run)
    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    what = named_by(deployment_of(wanted), target)
    order: Order = "rolling" if rolling else "canary" if canary else "at-once"
    goal = restart_goal(wanted, what, Options(below_minimum, order=order, idle_within_s=within_s))
    if dry_run:
        with connected(wanted) as fleet:
            proposal = propose_restart(fleet, goal, what.instances, what.routers)
            raise typer.Exit(preview(fleet, view, proposal, no_preflight))
    with changing(wanted, view, flow="restart", why=why, yes=yes) as work:
        result = flow(work.fleet, goal, what, work, work.run(why=target))
        work.ended(result.findings, result.failed)
    raise typer.Exit(work.code)
