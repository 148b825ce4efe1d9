"""The commands that hold one benchmark against another: compare, gate."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from launcher.cli.benching import EXITS
from launcher.cli.options import DataDir, JsonLines

RUN_HELP = "A run that measured, as `runs` shows it, or its bench.json; `last` is the newest."


def compare(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help=RUN_HELP)],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="The same.")] = "last",
    json_lines: JsonLines = False,
) -> None:
    """Show two benchmarks side by side: what else differs between them, and each figure. Asks no host."""
    from launcher.cli.againsttext import change_document, compared_text
    from launcher.cli.output import choose
    from launcher.flows.against import compared, kept

    view = choose(json_lines=json_lines)
    found = compared(kept(os.environ, before), kept(os.environ, after))
    if not json_lines:
        view.result("comparison", None, compared_text(found))
        return
    for difference in found.differences:
        view.result("difference", difference, "")
    for change in found.changes:
        view.result("change", change_document(change), "")


def gate(
    run: Annotated[str, typer.Argument(metavar="RUN", help=RUN_HELP)] = "last",
    baseline: Annotated[
        str,
        typer.Option(
            metavar="RUN",
            help="Against this run or file, not the baseline of its load and topology.",
            show_default=False,
        ),
    ] = "",
    store: Annotated[
        bool, typer.Option("--store", help="Keep it as the baseline of its load and topology; judge nothing.")
    ] = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Hold a benchmark against the baseline of its load and topology. Asks no host. Exit 5: it is worse.

    Worse: by more than configs/bench.yaml allows, and than the runs of both sides differ by among themselves.
    Baselines are in $DSV32_BASELINES, else in baselines/.
    """
    from launcher.cli.againsttext import change_document, gated_text
    from launcher.cli.output import choose
    from launcher.flows.against import baseline_of, gated, keep_as_baseline, kept
    from launcher.load.bench import read_method
    from launcher.load.data import Data, roots_of

    view = choose(json_lines=json_lines)
    after = kept(os.environ, run)
    if store:
        path, replaced = keep_as_baseline(os.environ, after)
        said = f"{path} is {after.run} now" + (", and was another one" if replaced else "")
        view.result("baseline", {"path": str(path), "run": after.run, "replaced": replaced}, said)
        return
    before = kept(os.environ, baseline) if baseline else baseline_of(os.environ, after)
    found = gated(before, after, read_method(Data(roots_of(data_dir))).gate)
    if not json_lines:
        view.result("gate", None, gated_text(found))
    else:
        for judged in found.judged:
            told = {"verdict": judged.verdict, "allowed": judged.allowed, "why": judged.why}
            view.result("judged", {**change_document(judged.change), **told}, "")
        view.result("gate", {"verdict": found.verdict, "baseline": before.run, "run": after.run}, "")
    raise typer.Exit(EXITS[found.verdict])
