"""The command that starts instances anew: restart."""

from __future__ import annotations

from typing import Annotated

import typer

from launcher.cli.options import BelowMinimum, DataDir, IdleWithin, InventoryOption, JsonLines, Why, Yes


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
    yes: Yes = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Drain, start anew as a whole, wait until ready, give back. No request fails where others serve."""
    from launcher.cli.changing import changing
    from launcher.cli.context import deployment_of, read_wanted
    from launcher.cli.operate import approval_possible
    from launcher.cli.output import choose
    from launcher.flows.restart import restart as flow
    from launcher.flows.restart_order import Manner, meant_by, touched
    from launcher.flows.targets import routing

    approval_possible(yes=yes)
    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    meant = meant_by(deployment_of(wanted), target)
    manner = Manner(
        rolling=rolling,
        canary=canary,
        below_minimum=below_minimum,
        within_s=within_s,
    )
    hosts = {*routing(wanted.deployment), *(h for i in touched(wanted, meant) for h in i.hosts)}
    with changing(wanted, view, flow="restart", why=why, lock=hosts, yes=yes) as work:
        run = work.run(why=target)
        work.ended(flow(work.fleet, wanted, meant, manner, work.approval(wanted), run))
    raise typer.Exit(work.code)
