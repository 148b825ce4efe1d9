"""The command that moves a service to another stack: upgrade."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.gate import Despite, Gate, gate_of
from launcher.cli.options import BelowMinimum, DataDir, IdleWithin, InventoryArgument, JsonLines, Why, Yes
from launcher.model.problem import Exit, InputError

if TYPE_CHECKING:
    from launcher.cli.output import View
    from launcher.flows.edited import Edited
    from launcher.flows.rollout import Manner
    from launcher.model.wish import Wanted


def upgrade(
    to: Annotated[str, typer.Option("--to", metavar="STACK", help="From configs/stacks/.")],
    inventory: InventoryArgument = None,
    layout: Annotated[
        str, typer.Option(metavar="NAME", help="With this layout, from configs/layouts/.", show_default=False)
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Ask no host: show what changes, and no more.")
    ] = False,
    why: Why = "",
    below_minimum: BelowMinimum = False,
    within_s: IdleWithin = 300.0,
    despite: Despite = "",
    yes: Yes = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Show what another stack changes for this configuration, then move there. No request fails.

    Instances move one after the other, or half and half where two releases cannot hand KV to each other. What
    does not come up or answer goes back by itself. Once all of it is good the inventory's line is rewritten;
    else it stays as it was. Given again, a run that was killed comes to its end; `up` would go back.
    """
    from launcher.cli.comparetext import comparison_text
    from launcher.cli.context import chosen_inventory
    from launcher.cli.operate import approval_possible
    from launcher.cli.output import choose
    from launcher.flows.compare import compare, edits_to
    from launcher.flows.edited import edited_inventory
    from launcher.flows.lint import read
    from launcher.flows.rollout import Manner
    from launcher.load import load
    from launcher.load.data import Data, roots_of
    from launcher.resolve import resolve

    approval_possible(yes=yes or dry_run)
    gate = gate_of(despite, why, data_dir)
    view = choose(json_lines=json_lines)
    path, opened = chosen_inventory(inventory), None if dry_run else os.environ
    before = resolve(load(path, data_dir=data_dir, environment=opened))
    edits = edits_to(before.wish.inventory, stack=to, layout=layout)
    made = edited_inventory(path, edits, data_dir=data_dir, environment=opened)
    told = compare(before, made.wish, read(Data(roots_of(data_dir))))
    view.result("comparison", told, comparison_text(told, cluster=made.wish.inventory.cluster))
    if told.problems:
        raise InputError(*told.problems)
    if not dry_run:
        manner = Manner(below_minimum=below_minimum, within_s=within_s)
        raise typer.Exit(_move(before, made, manner, gate, view, yes=yes, why=why))


def _move(
    before: Wanted, made: Edited, manner: Manner, gate: Gate, view: View, *, yes: bool, why: str
) -> Exit:
    """Ask, move, and write the inventory if all of it is good."""
    from launcher.cli.changing import changing
    from launcher.cli.edittext import edit_text
    from launcher.flows.rollout import rollout
    from launcher.resolve import resolve

    made.refuse_unwritable()
    after = resolve(made.wish)
    hosts = made.wish.inventory.hosts
    with changing(after, view, flow="upgrade", why=why, lock=hosts, yes=yes) as work:
        result = rollout(work.fleet, before, after, manner, work.approval(after, gate), work.run())
        work.ended(result.findings, result.failed)
        if work.agreed and work.code is Exit.DONE:
            made.write()
    if work.agreed and work.code is Exit.DONE:
        view.result("edit", {"lines": made.lines}, edit_text(made.lines))
    elif work.agreed:
        view.say(f"{made.path} is as it was; dsv32-launch status shows what serves")
    return work.code
