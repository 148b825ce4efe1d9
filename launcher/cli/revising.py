"""The commands about what was wanted before: revisions, rollback."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.gate import Despite, gate_of
from launcher.cli.options import BelowMinimum, DataDir, IdleWithin, InventoryOption, JsonLines, Why, Yes
from launcher.model.problem import Exit, InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from launcher.model.revision import Entry


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
    from launcher.cli.operate import title
    from launcher.cli.output import choose
    from launcher.flows import revisions as flow
    from launcher.flows.plan import plan
    from launcher.model.revision import running
    from launcher.resolve.revision import revision_of

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
    yes: Yes = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Go back to what was good before, engine version included. No request fails where others serve."""
    from launcher.cli.changing import changing
    from launcher.cli.context import read_wanted
    from launcher.cli.operate import approval_possible
    from launcher.cli.output import choose
    from launcher.flows import revisions as flow
    from launcher.flows.rollout import Manner, rollout
    from launcher.resolve.revision import revision_of

    approval_possible(yes=yes)
    gate = gate_of(despite, why, data_dir)
    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    own, hosts = revision_of(wanted), wanted.wish.inventory.hosts
    with changing(wanted, view, flow="rollback", why=why, lock=hosts, yes=yes) as work:
        entries, _ = flow.recall(work.fleet, hosts)
        entry = flow.chosen(entries, to) if to else target(entries, own)
        kept = work.keeper(wanted)
        after = kept(entry)
        last = next((e for e in reversed(entries) if e.revision != entry.revision), None)
        before = kept(last) if last else wanted
        returns = bool(last and last.result == "good")
        manner = Manner(below_minimum=below_minimum, within_s=within_s, returns=returns)
        result = rollout(work.fleet, before, after, manner, work.approval(after, gate), work.run())
        work.ended(result.findings, result.failed)
    if own != entry.revision:
        view.say(f"{wanted.wish.inventory.path} still says {own}, and the next `up` goes there again:")
        view.say("dsv32-launch plan shows what differs; correct the inventory")
    raise typer.Exit(work.code)


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
