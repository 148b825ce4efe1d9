"""The command that moves a service to another stack: upgrade."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.options import (
    BelowMinimum,
    DataDir,
    Despite,
    DryRun,
    IdleWithin,
    InventoryArgument,
    JsonLines,
    Why,
    Yes,
)
from launcher.model.problem import Exit, InputError

if TYPE_CHECKING:
    from launcher.cli.changing import Work
    from launcher.cli.output import View
    from launcher.flows.edited import Edited
    from launcher.flows.load_gate import LoadGate
    from launcher.flows.preflight import Preflight
    from launcher.load.data import Data
    from launcher.model.wish import Wanted
    from launcher.rollout.planning import Goal


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
    dry_run: DryRun = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask no host: compare the two stacks, and no more.")
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
    from launcher.flows.preflight import Preflight, waived_checks
    from launcher.load import load
    from launcher.load.data import Data, roots_of
    from launcher.resolve import resolve
    from launcher.rollout.planning import Goal
    from launcher.rollout.situation import Options

    approval_possible(yes=yes or dry_run or offline)
    checks = Preflight(data_dir, waived_checks(despite, why, data_dir))
    view = choose(json_lines=json_lines)
    path, opened = chosen_inventory(inventory), None if offline else os.environ
    before = resolve(load(path, data_dir=data_dir, environment=opened))
    edits = edits_to(before.wish.inventory, stack=to, layout=layout)
    made = edited_inventory(path, edits, data_dir=data_dir, environment=opened)
    comparison = compare(before, made.wish, read(Data(roots_of(data_dir))))
    view.result("comparison", comparison, comparison_text(comparison, cluster=made.wish.inventory.cluster))
    if comparison.problems:
        raise InputError(*comparison.problems)
    held = _held(before, Data(roots_of(data_dir)), gated_by) if gated_by else None
    if offline:
        return
    options = Options(below_minimum, keeps_minimum=True, needs_all=True, idle_within_s=within_s)
    after = resolve(made.wish)
    goal = Goal(after, frozenset(after.steps), options, before)
    if dry_run:
        raise typer.Exit(_preview(goal, checks, view))
    raise typer.Exit(_move(goal, made, checks, view, yes=yes, why=why, held=held))


def _preview(goal: Goal, checks: Preflight, view: View) -> Exit:
    """What the hosts would be made, in which order."""
    from launcher.cli.context import connected
    from launcher.cli.preview import dry_run
    from launcher.rollout.planning import propose

    with connected(goal.wanted) as fleet:
        return dry_run(fleet, view, propose(fleet, goal), checks)


def _move(
    goal: Goal,
    made: Edited,
    checks: Preflight,
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
    from launcher.flows.gated import gated_upgrade
    from launcher.flows.up import up

    made.refuse_unwritable()
    with changing(goal.wanted, view, flow="upgrade", why=why, yes=yes, checks=checks) as work:
        run = work.run()
        if held:
            result = gated_upgrade(work.fleet, goal, held(work), work, run)
        else:
            result = up(work.fleet, goal, work, run, go_back_on_failure=True)
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
