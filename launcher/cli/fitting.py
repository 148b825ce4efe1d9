"""The commands that work out what a layout holds and how fast it is: fit, predict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from launcher.cli.options import (
    DataDir,
    InventoryArgument,
    JsonLines,
    LoneHardware,
    LoneLayout,
    LoneModel,
    LoneStack,
)
from launcher.model.problem import Exit, InputError, Problem

STOCK_LAYOUT = "current-2p1d"

STOCK_STACK, STOCK_HARDWARE, STOCK_MODEL = "current", "h200", "deepseek-v3.2"
"""What a layout by itself is looked at with, where nothing else is said."""
STOCK: Mapping[str, str | None] = {
    "--stack": STOCK_STACK,
    "--hardware": STOCK_HARDWARE,
    "--model": STOCK_MODEL,
    "--model-config": None,
}


def _refuse_both(inventory: Path | None, alone: Mapping[str, bool]) -> None:
    """InputError where an inventory stands beside what is looked at without one."""
    for option, given in alone.items():
        if inventory and given:
            what = f"{option} looks at layouts by themselves, and an inventory is named too"
            raise InputError(Problem(what, where=option, do=f"leave out {inventory}, or {option}"))


def _refuse_unread(chosen: Mapping[str, object]) -> None:
    """InputError for an option that an inventory answers itself."""
    for option, value in chosen.items():
        if value != STOCK[option]:
            do = "add --layout NAME, or write it into the inventory"
            raise InputError(Problem(f"{option} goes with --layout alone", where=option, do=do))


def fit(
    inventory: InventoryArgument = None,
    layout: LoneLayout = "",
    stack: LoneStack = STOCK_STACK,
    hardware: LoneHardware = STOCK_HARDWARE,
    model: LoneModel = STOCK_MODEL,
    model_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --layout: a config.json to take dimensions from.", show_default=False
        ),
    ] = None,
    isl: Annotated[int, typer.Option(metavar="N", min=1, help="Tokens of a request's prompt.")] = 4096,
    osl: Annotated[int, typer.Option(metavar="N", min=1, help="Tokens of its answer.")] = 1024,
    explain: Annotated[
        bool, typer.Option("--explain", help="Every line with its formula and source.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Compare all layouts, and a grid of shapes, over --gpus.")
    ] = False,
    gpus: Annotated[int, typer.Option(metavar="N", min=1, help="With --all: GPUs there are.")] = 48,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Work out a GPU's memory, tokens of KV, requests at once. Asks no host; exit 2 if it does not fit."""
    from launcher.cli.context import chosen_inventory
    from launcher.cli.fittext import document, explained, table
    from launcher.cli.output import choose
    from launcher.flows import fit as flow
    from launcher.flows.alone import Names, wanted_of_layout
    from launcher.load import load_from
    from launcher.load.data import Data, roots_of
    from launcher.resolve import resolve

    _refuse_both(inventory, {"--layout": bool(layout), "--all": everything})
    if not (layout or everything):
        chosen = {"--stack": stack, "--hardware": hardware, "--model": model, "--model-config": model_config}
        _refuse_unread(chosen)
    view = choose(json_lines=json_lines)
    data = Data(roots_of(data_dir))
    load, known = flow.Load(isl, osl), flow.read_engines(data)
    names = Names(
        layout=layout or STOCK_LAYOUT, stack=stack, hardware=hardware, model=model, config=model_config
    )
    problems: tuple[Problem, ...] = ()
    if everything:
        rows, left_out = flow.compare(names, data, known, load, gpus=gpus)
        for problem in left_out:
            view.say(f"left out: {problem.what} ({problem.where})")
    elif layout:
        rows = flow.fit(wanted_of_layout(names, data), known, load, name=layout)
    else:
        path = chosen_inventory(inventory)
        rows = flow.fit(resolve(load_from(data, path)), known, load, name=path.stem)
    text = table(rows, load) + ("\n\n" + explained(rows) if explain else "")
    view.result("fit", {"load": load, "rows": [document(row) for row in rows]}, text)
    if not everything:
        problems = tuple(flow.misfits(rows))
    view.problems(problems)
    if problems:
        raise typer.Exit(Exit.INPUT_WRONG)


def predict(
    inventory: InventoryArgument = None,
    layout: LoneLayout = "",
    stack: LoneStack = STOCK_STACK,
    hardware: LoneHardware = STOCK_HARDWARE,
    model: LoneModel = STOCK_MODEL,
    workload: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="From configs/workloads/; else the article's for its pools.",
            show_default=False,
        ),
    ] = "",
    isl: Annotated[int, typer.Option(metavar="N", min=0, help="Tokens of a prompt, for the workload's.")] = 0,
    osl: Annotated[int, typer.Option(metavar="N", min=0, help="Tokens of an answer.")] = 0,
    concurrency: Annotated[int, typer.Option(metavar="N", min=0, help="Requests at once.")] = 0,
    rate: Annotated[float, typer.Option(metavar="R", min=0.0, help="Requests a second.")] = 0.0,
    explain: Annotated[bool, typer.Option("--explain", help="Every term with its formula.")] = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Work out throughput, TTFT and TPOT by a model of published points, its errors beside. Asks no host."""
    from launcher.cli.context import chosen_inventory
    from launcher.cli.output import choose
    from launcher.cli.predicttext import document, text
    from launcher.flows import predict as flow
    from launcher.flows.alone import Names, wanted_of_layout
    from launcher.flows.fit import read_engines
    from launcher.load import load_from
    from launcher.load.choice import Choice
    from launcher.load.data import Data, roots_of
    from launcher.load.sla import read_workload
    from launcher.resolve import resolve

    _refuse_both(inventory, {"--layout": bool(layout)})
    if not layout:
        _refuse_unread({"--stack": stack, "--hardware": hardware, "--model": model})
    view = choose(json_lines=json_lines)
    data = Data(roots_of(data_dir))
    if layout:
        names = Names(layout=layout, stack=stack, hardware=hardware, model=model)
        wanted, name = wanted_of_layout(names, data), layout
    else:
        path = chosen_inventory(inventory)
        wanted, name = resolve(load_from(data, path)), path.stem
    chosen = Choice(workload or flow.workload_for(wanted), "--workload")
    asked, sla = read_workload(chosen, data)
    asked = replace(
        asked,
        input_tokens=isl or asked.input_tokens,
        output_tokens=osl or asked.output_tokens,
        concurrency=(concurrency,) if concurrency else asked.concurrency,
        request_rate=rate or asked.request_rate,
    )
    made = flow.forecast(
        wanted, read_engines(data), data, name=f"{name}, {chosen.name}", loads=flow.loads_of(asked), sla=sla
    )
    view.result("predict", document(made), text(made, explain=explain))
