"""The commands about what was wanted before: revisions, rollback."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.options import (
    BelowMinimum,
    DataDir,
    Despite,
    DryRun,
    IdleWithin,
    InventoryOption,
    JsonLines,
    Why,
    Yes,
)
from launcher.model.problem import Exit, InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from launcher.execute.hands import Hands
    from launcher.model.revision import Entry
    from launcher.model.wish import Wanted
    from launcher.rollout.planning import Goal
    from launcher.rollout.situation import Options


def revisions(
    revision: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="Show what a rollback to this one would change.", show_default=False
        ),
    ] = "",
    inventory: InventoryOption = None,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """List what hosts remember that was wanted of them, by whom, with which result. Changes nothing."""
    from launcher.cli.context import connected, read_wanted
    from launcher.cli.output import choose
    from launcher.cli.preview import title
    from launcher.flows import revisions as flow
    from launcher.model.revision import running
    from launcher.resolve.revision import revision_of
    from launcher.rollout.planning import plan

    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    with connected(wanted) as fleet:
        entries, problems = flow.recall(fleet, wanted.wish.inventory.hosts)
        if revision:
            with TemporaryDirectory() as folder:
                entry = flow.chosen(entries, revision)
                kept = flow.wanted_of(fleet, entry, wanted.wish, Path(folder), environment=os.environ)
                view.plan(plan(fleet, kept), title=f"{entry.revision}: {title(kept)}")
    now = running(entries)
    for entry in () if revision else reversed(entries):
        told = {**asdict(entry), "when": entry.when, "runs": entry.revision == now}
        view.result("revision", told, entry_line(entry, runs=entry.revision == now))
    own = revision_of(wanted)
    if not revision and own != now:
        view.say(f"{wanted.wish.inventory.path} says {own}: dsv32-launch plan shows what differs")
    view.problems(problems)
    raise typer.Exit(Exit.HOSTS_FAILED if problems else Exit.DONE)


def rollback(
    to: Annotated[
        str,
        typer.Option(
            metavar="ID", help="A revision; default: the last good one before this.", show_default=False
        ),
    ] = "",
    why: Why = "",
    inventory: InventoryOption = None,
    below_minimum: BelowMinimum = False,
    within_s: IdleWithin = 300.0,
    despite: Despite = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Go back to what was good before, engine version included. No request fails where others serve."""
    from launcher.cli.changing import changing, keeper
    from launcher.cli.context import connected, read_wanted
    from launcher.cli.operate import approval_possible
    from launcher.cli.output import choose
    from launcher.cli.preview import dry_run as preview
    from launcher.flows.preflight import Preflight, waived_checks
    from launcher.flows.up import up
    from launcher.resolve.revision import revision_of
    from launcher.rollout.planning import propose
    from launcher.rollout.situation import Options

    approval_possible(yes=yes or dry_run)
    checks = Preflight(data_dir, waived_checks(despite, why, data_dir))
    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    options = Options(below_minimum, keeps_minimum=True, needs_all=True, idle_within_s=within_s)
    own = revision_of(wanted)
    if dry_run:
        with connected(wanted) as fleet, TemporaryDirectory() as folder:
            kept = keeper(fleet, wanted, Path(folder))
            goal, _, _ = _goal_back(fleet, wanted, to, kept, options)
            raise typer.Exit(preview(fleet, view, propose(fleet, goal), checks))
    with changing(wanted, view, flow="rollback", why=why, yes=yes, checks=checks) as work:
        work.fleet.lock(wanted.wish.inventory.hosts)
        goal, entry, returns = _goal_back(work.fleet, wanted, to, work.keeper(wanted), options)
        result = up(work.fleet, goal, work, work.run(), go_back_on_failure=returns)
        work.ended(result.findings, result.failed)
    if own != entry.revision:
        view.say(f"{wanted.wish.inventory.path} still says {own}, and the next `up` goes there again:")
        view.say("dsv32-launch plan shows what differs; correct the inventory")
    raise typer.Exit(work.code)


def _goal_back(
    fleet: Hands, wanted: Wanted, to: str, kept: Callable[[Entry], Wanted], options: Options
) -> tuple[Goal, Entry, bool]:
    """Where a rollback goes, the entry that it goes to, and whether a failure of it goes back again."""
    from launcher.flows import revisions as flow
    from launcher.resolve.revision import revision_of
    from launcher.rollout.planning import Goal

    entries, _ = flow.recall(fleet, wanted.wish.inventory.hosts)
    entry = flow.chosen(entries, to) if to else target(entries, revision_of(wanted))
    after = kept(entry)
    last = next((e for e in reversed(entries) if e.revision != entry.revision), None)
    before = kept(last) if last else wanted
    goal = Goal(after, frozenset(after.steps), options, before)
    return goal, entry, bool(last and last.result == "good")


def target(entries: Sequence[Entry], own: str) -> Entry:
    """Where a rollback goes by itself. InputError where nothing good was before."""
    from launcher.flows.revisions import chosen
    from launcher.model.revision import good_before

    found = good_before(entries, own)
    if found is None:
        what = "hosts remember nothing good before what is wanted now"
        do = "dsv32-launch revisions lists what there is; rollback --to ID"
        raise InputError(Problem(what, "rollback", do=do))
    return chosen(entries, found)


def entry_line(entry: Entry, *, runs: bool) -> str:
    """Which, when, who by what, how it ended, with which software, why; what a gate found."""
    software = f"vLLM {entry.version}, stack {entry.stack}" if entry.version else f"stack {entry.stack}"
    by = f"{entry.who:<10} {entry.flow:<9} {entry.result:<7}"
    why = f"  ({entry.why})" if entry.why else ""
    fault = f"  gate: {entry.fault}" if entry.fault else ""
    return f"{'*' if runs else ' '} {entry.revision}  {entry.when}  {by} {software}{why}{fault}"
