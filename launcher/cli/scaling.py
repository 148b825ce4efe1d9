"""The command that adds and removes instances: scale."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.gate import Despite, gate_of
from launcher.cli.options import DataDir, JsonLines, Verbose, Why, Yes
from launcher.model.problem import InputError, PlanRefusedError, Problem

if TYPE_CHECKING:
    from launcher.model.plan import Plan


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
    from launcher.cli.context import chosen_inventory, deployment_of
    from launcher.cli.edittext import edit_text
    from launcher.cli.operate import approval_possible, drained_lines, remark_of, remarks, title
    from launcher.cli.output import choose
    from launcher.flows import scale as flow
    from launcher.flows import up as bring
    from launcher.flows.drained import respecting
    from launcher.flows.edited import edited_inventory
    from launcher.flows.targets import limit_to
    from launcher.load import load
    from launcher.resolve import resolve

    approval_possible(yes=yes)
    gate = gate_of(despite, why, data_dir)
    path = chosen_inventory(_inventory(words))
    counts = flow.counts_of([word for word in words if "=" in word])
    named = [text for text in hosts.split(",") if text.strip()]
    edits = flow.edits_for(load(path, data_dir=data_dir), counts, named=named, below_minimum=below_minimum)
    made = edited_inventory(path, edits, data_dir=data_dir, environment=os.environ)
    wanted = resolve(made.wish)
    deployment_of(wanted)
    view = choose(json_lines=json_lines, verbose=verbose)
    lock = made.wish.inventory.hosts
    with changing(wanted, view, flow="scale", why=why, lock=lock, yes=yes) as work:
        wanted = respecting(work.fleet, wanted)

        def approve(planned: Plan) -> bool:
            if planned.unreached:  # a router that cannot be told would go on asking what is removed
                raise PlanRefusedError(*planned.unreached.values())
            remark = remark_of(wanted, data_dir) if planned else ""
            view.result("edit", {"lines": made.lines}, edit_text(made.lines))
            view.plan(planned, title=title(wanted), remark=remarks(remark, drained_lines(wanted)))
            gate.ask(work.fleet, wanted, planned, work.running.listen)
            if not work.approved(planned, ask=bool(planned or made.lines)):
                return False
            made.write()
            return True

        everything = limit_to((), wanted.steps, wanted.deployment)
        result = bring.up(work.fleet, wanted, everything, approve, work.run())
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
