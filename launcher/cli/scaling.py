"""The command that adds and removes instances: scale."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from launcher.cli.options import DataDir, Despite, DryRun, JsonLines, Verbose, Why, Yes
from launcher.model.problem import InputError, Problem


def scale(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="POOL=N... [INVENTORY]",
            help="prefill=3, decode=2 or both; inventory file as for `up`.",
            show_default=False,
        ),
    ],
    hosts: Annotated[
        str,
        typer.Option(
            metavar="NAME,...", help="Free hosts that pools take beside their own.", show_default=False
        ),
    ] = "",
    below_minimum: Annotated[
        bool, typer.Option("--below-minimum", help="Even below a pool's minimum, which is lowered too.")
    ] = False,
    despite: Despite = "",
    dry_run: DryRun = False,
    why: Why = "",
    yes: Yes = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
    verbose: Verbose = 0,
) -> None:
    """Add instances to a pool or remove its last ones, routers following. No request fails.

    Hosts that a pool has and no instance takes come first, then those of --hosts. A removed instance ends
    what it has begun; its hosts stay in the pool, spare. The inventory's lines are shown with the plan, and
    written once you agree, before hosts change: the same command, or `up`, finishes a run that was killed.
    """
    from launcher.cli.changing import changing
    from launcher.cli.context import chosen_inventory, connected, deployment_of
    from launcher.cli.edittext import edit_text
    from launcher.cli.operate import approval_possible
    from launcher.cli.output import choose
    from launcher.cli.preview import dry_run as preview
    from launcher.flows import scale as flow
    from launcher.flows.edited import edited_inventory
    from launcher.flows.preflight import Preflight, waived_checks
    from launcher.flows.up import up
    from launcher.load import load
    from launcher.resolve import resolve
    from launcher.rollout.planning import Goal, propose
    from launcher.rollout.situation import Options

    approval_possible(yes=yes or dry_run)
    checks = Preflight(data_dir, waived_checks(despite, why, data_dir))
    path = chosen_inventory(_inventory(words))
    counts = flow.counts_of([word for word in words if "=" in word])
    named = [text for text in hosts.split(",") if text.strip()]
    edits = flow.edits_for(load(path, data_dir=data_dir), counts, named=named, below_minimum=below_minimum)
    made = edited_inventory(path, edits, data_dir=data_dir, environment=os.environ)
    wanted = resolve(made.wish)
    deployment_of(wanted)
    view = choose(json_lines=json_lines, verbose=verbose)
    # a router that cannot be told would go on asking what is removed
    goal = Goal(wanted, frozenset(wanted.steps), Options(needs_all=True))
    view.result("edit", {"lines": made.lines}, edit_text(made.lines))
    if dry_run:
        with connected(wanted) as fleet:
            raise typer.Exit(preview(fleet, view, propose(fleet, goal), checks))
    write = made.write if made.lines else None
    with changing(wanted, view, flow="scale", why=why, yes=yes, checks=checks, first=write) as work:
        result = up(work.fleet, goal, work, work.run())
        work.ended(result.findings, result.failed)
    if result.outcome:
        view.say(f"{result.outcome.done} of {result.outcome.planned} changes made")
    raise typer.Exit(work.code)


def _inventory(words: list[str]) -> Path | None:
    """The word that is no count; InputError for two of them."""
    paths = [word for word in words if "=" not in word]
    if len(paths) > 1:
        what = f"`{paths[0]}` and `{paths[1]}` are both no POOL=N"
        raise InputError(Problem(what, do="name one inventory, and each pool like prefill=3"))
    return Path(paths[0]) if paths else None
