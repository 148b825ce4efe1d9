"""The command that takes roles off hosts: remove."""

from __future__ import annotations

from typing import Annotated

import typer

from launcher.cli.options import DataDir, InventoryOption, JsonLines, Limit, Why, Yes


def remove(
    roles: Annotated[
        list[str], typer.Argument(metavar="ROLE...", help="Roles of stack or platform; `all`: all of them.")
    ],
    limit: Limit = "",
    why: Why = "",
    inventory: InventoryOption = None,
    yes: Yes = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Take away what roles made on hosts where nothing serves; with a reboot where the kernel shows it still.

    Data and weights stay, and what others may need. `up` makes it again, unless its name leaves the file.
    """
    from launcher.cli.changing import changing
    from launcher.cli.context import read_wanted
    from launcher.cli.operate import approval_possible
    from launcher.cli.output import choose
    from launcher.cli.preview import title
    from launcher.flows import remove as flow
    from launcher.flows.targets import limit_to
    from launcher.rollout.planning import limited

    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    meant = flow.chosen(wanted, roles)
    named = limit_to(limit.split(","), wanted.steps, wanted.deployment)
    here = limited(wanted, flow.hosts_of(named))
    approval_possible(yes=yes)
    with changing(wanted, view, flow="remove", why=why, lock=here.steps, yes=yes) as work:
        planned = flow.plan_removal(work.fleet, here, meant)
        view.plan(planned, title=title(wanted))
        failed = tuple(planned.unreached.values())
        if planned and work.approved(planned, ask=True, question="Remove?"):
            failed += flow.remove(work.fleet, here, planned, meant, work.run())
        work.ended(failed=failed)
    raise typer.Exit(work.code)
