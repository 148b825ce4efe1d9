"""The command that breaks sandbox hosts on purpose: drill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.options import DataDir, InventoryOption, JsonLines, Why
from launcher.model.problem import InputError, Problem

if TYPE_CHECKING:
    from launcher.flows.drill_run import Outcome
    from launcher.model.drill import Drill


def drill(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...", help="As --list shows it; NAME@HOST: there alone.", show_default=False
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every drill that there is a spot for.")] = False,
    list_them: Annotated[bool, typer.Option("--list", help="Say which there are; breaks nothing.")] = False,
    inventory: InventoryOption = None,
    per_second: Annotated[
        float, typer.Option("--rate", metavar="N", min=0.1, max=100, help="Requests a second meanwhile.")
    ] = 4.0,
    request_within_s: Annotated[
        float, typer.Option("--request-within", metavar="S", min=1, help="The time-out of each request.")
    ] = 60.0,
    directory: Annotated[
        Path, typer.Option("--sandbox", envvar="DSV32_SANDBOX_DIR", help="Work directory of the sandbox.")
    ] = Path("/var/tmp/dsv32-sandbox"),
    why: Why = "",
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Break something on sandbox hosts under a steady load, and time how it is found and ended. Exit 1 if one
    fails.

    Refused where a host of the inventory is no sandbox host of this machine. Needs a deployment that serves,
    and leaves it serving.
    """
    from launcher.cli.context import read_wanted
    from launcher.cli.drillrun import Asked, cases_of, one, stage_of
    from launcher.cli.drilltext import drill_row, outcome_document, outcome_line, table
    from launcher.cli.output import choose
    from launcher.load.data import Data, roots_of
    from launcher.load.drills import read_drills

    view = choose(json_lines=json_lines)
    known = read_drills(Data(roots_of(data_dir)))
    if list_them:
        for it in known.values():
            view.result("drill", it, drill_row(it))
        return
    chosen = picked(names or (), known, every=every)
    asked = Asked(read_wanted(inventory, data_dir), directory, data_dir, why, per_second, request_within_s)
    outcomes: list[Outcome] = []
    with stage_of(asked, view) as (stage, work):
        for case in cases_of(stage, chosen, named=not every):
            view.say(f"\n{case.title}: {case.drill.title}")
            outcomes.append(one(stage, case, asked, work.running))
            view.result("outcome", outcome_document(outcomes[-1]), outcome_line(outcomes[-1]))
        failed = [o for o in outcomes if not o.passed]
        work.ended(failed=[Problem(text, o.case.title) for o in failed for text in o.problems])
    view.result("drills", {"passed": len(outcomes) - len(failed), "failed": len(failed)}, table(outcomes))
    raise typer.Exit(work.code)


def picked(names: Sequence[str], known: Mapping[str, Drill], *, every: bool) -> Sequence[tuple[Drill, str]]:
    """Drills, each with the host that it is limited to, if it is. InputError where nothing is named."""
    from launcher.load.drills import drills_named

    if bool(names) == every:
        what = "name drills, or say --all" if not names else "names and --all exclude each other"
        raise InputError(Problem(what, do="dsv32-launch drill --list"))
    if every:
        return [(d, "") for d in known.values()]
    words = [name.partition("@") for name in names]
    found = drills_named([word[0] for word in words], known)
    return [(d, word[2]) for d, word in zip(found, words, strict=True)]
