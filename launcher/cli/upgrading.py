"""The command that moves a service to another stack: upgrade."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.gate import Despite, Gate, gate_of
from launcher.cli.options import BelowMinimum, DataDir, IdleWithin, InventoryArgument, JsonLines, Why, Yes
from launcher.model.problem import Exit, InputError

if TYPE_CHECKING:
    from launcher.cli.changing import Work
    from launcher.cli.output import View
    from launcher.flows.edited import Edited
    from launcher.flows.load_gate import LoadGate
    from launcher.flows.rollout import Manner
    from launcher.load.data import Data
    from launcher.model.wish import Wanted


def upgrade(
    to: Annotated[str, typer.Option("--to", metavar="STACK", help="From configs/stacks/.")],
    inventory: InventoryArgument = None,
    layout: Annotated[
        str, typer.Option(metavar="NAME", help="With this layout, from configs/layouts/.", show_default=False)
    ] = "",
    gated_by: Annotated[
        str,
        typer.Option(
            "--gate",
            metavar="WORKLOAD",
            help="Hold this load, once all has moved, against what ran before.",
            show_default=False,
        ),
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
    With --gate all of it goes back, too, where the load is worse then than its baseline, which is measured
    first if nobody has kept one. Exit 5: it was; 3: nobody can tell, and it stays.
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
    held = _held(before, Data(roots_of(data_dir)), gated_by) if gated_by else None
    if not dry_run:
        manner = Manner(below_minimum=below_minimum, within_s=within_s)
        raise typer.Exit(_move(before, made, manner, gate, view, yes=yes, why=why, held=held))


def _move(
    before: Wanted,
    made: Edited,
    manner: Manner,
    gate: Gate,
    view: View,
    *,
    yes: bool,
    why: str,
    held: Callable[[Work], LoadGate] | None,
) -> Exit:
    """Ask, move, and write the inventory if all of it is good, or stays."""
    from launcher.cli.benching import EXITS
    from launcher.cli.changing import changing
    from launcher.cli.edittext import edit_text
    from launcher.flows.gated import gated_rollout
    from launcher.flows.rollout import rollout
    from launcher.resolve import resolve

    made.refuse_unwritable()
    after = resolve(made.wish)
    hosts = made.wish.inventory.hosts
    with changing(after, view, flow="upgrade", why=why, lock=hosts, yes=yes) as work:
        ask, run = work.approval(after, gate), work.run()
        if held:
            result = gated_rollout(work.fleet, before, after, held(work), manner, ask, run)
        else:
            result = rollout(work.fleet, before, after, manner, ask, run)
        work.ended(result.findings, result.failed, code=EXITS[result.verdict], because=result.worse)
        stays = work.agreed and work.code in (Exit.DONE, Exit.CANNOT_TELL)
        if stays:
            made.write()
    if stays:
        view.result("edit", {"lines": made.lines}, edit_text(made.lines))
    elif work.agreed:
        view.say(f"{made.path} is as it was; dsv32-launch status shows what serves")
    return work.code


def _held(before: Wanted, data: Data, workload: str) -> Callable[[Work], LoadGate]:
    """What `--gate` names, for the run that will measure it. InputError for a wrong name."""
    from launcher.cli.benching import chosen
    from launcher.cli.context import deployment_of
    from launcher.flows.bench_run import Record
    from launcher.flows.load_gate import LoadGate
    from launcher.load.bench import read_method, read_telemetry

    deployment_of(before)
    load, level = chosen(data, workload, "", concurrency="", rate=0.0)
    method, telemetry = read_method(data), read_telemetry(data)

    def held(work: Work) -> LoadGate:
        journal = work.running.journal
        record = Record(work.running.listen, journal.keep, work.interrupt)
        return LoadGate(load, level, method, telemetry, record, journal.run, os.environ)

    return held
