"""The command that measures one load under several settings: experiment."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.options import DataDir, InventoryOption, JsonLines, Why, Yes
from launcher.model.problem import Exit, InputError, Problem

if TYPE_CHECKING:
    from launcher.cli.output import View
    from launcher.flows.experiment import Arm, Told
    from launcher.flows.layout_trials import Place
    from launcher.load.data import Data
    from launcher.model.experiment import Experiment
    from launcher.model.wish import Wanted


def experiment(
    name: Annotated[
        str,
        typer.Argument(metavar="EXPERIMENT", help="From configs/experiments/; --list shows them."),
    ] = "",
    into: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="For report and figures, and to go on from; default: experiments/CLUSTER-EXPERIMENT.",
            show_default=False,
        ),
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List experiments; change nothing.")] = False,
    why: Why = "",
    inventory: InventoryOption = None,
    yes: Yes = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Put one load on several variants of a layout in turn, and say whether figures are as expected.

    Each is brought up and measured, and then the inventory's own layout is. Given again it goes on where it
    was killed. Exit 3: what was expected cannot be told.
    """
    from launcher.cli.output import choose
    from launcher.load.choice import Choice
    from launcher.load.data import Data, roots_of
    from launcher.load.experiments import read_experiment

    view, data = choose(json_lines=json_lines), Data(roots_of(data_dir))
    if listing:
        list_all(view, data)
        return
    if not name:
        do = "dsv32-launch experiment prefill-1host; --list shows what there is"
        raise InputError(Problem("no experiment is given", "EXPERIMENT", do=do))
    asked = read_experiment(Choice(name, "EXPERIMENT"), data)
    code = on_fleet(view, asked, into, inventory=inventory, data_dir=data_dir, why=why, yes=yes)
    raise typer.Exit(code)


def list_all(view: View, data: Data) -> None:
    """Each experiment, a line."""
    from launcher.load.choice import Choice
    from launcher.load.experiments import experiment_names, read_experiment

    for name in experiment_names(data):
        found = read_experiment(Choice(name, "--list"), data)
        view.result("experiment", found, f"{name:<14}  {found.stack:<12}  {found.about}")


def on_fleet(
    view: View,
    asked: Experiment,
    into: Path | None,
    *,
    inventory: Path | None,
    data_dir: Path | None,
    why: str,
    yes: bool,
) -> Exit:
    """All variants, on the hosts of an inventory, after the user has seen what they are."""
    from launcher.cli.context import chosen_inventory, deployment_of, read_wanted
    from launcher.cli.experimenttext import path_text
    from launcher.cli.operate import agreed
    from launcher.flows.experiment import arms_of
    from launcher.flows.layout_trials import Place, require_folder

    base = read_wanted(inventory, data_dir)
    deployment_of(base)
    cluster = base.wish.inventory.cluster
    folder = into or Path("experiments") / f"{cluster}-{asked.name}"
    require_folder(folder)
    place = Place(folder, base.wish.inventory.layout, chosen_inventory(inventory), data_dir)
    arms = arms_of(asked, place, base)
    view.say(path_text(asked, arms))
    if (has := base.wish.inventory.stack) != asked.stack:
        view.say(f"\nwritten for stack {asked.stack}; {cluster} has {has}, which may read other flags")
    view.say(f"\neach variant starts engines of {cluster} anew; it ends with {place.layout} up again")
    if not agreed("Begin?", yes=yes):
        return Exit.DONE
    told = conducted_on(view, base, asked, arms, place, why=why)
    leave(view, told, folder, data_dir)
    unsure = any(c.finding == "cannot tell" for c in told.contrasts)
    return Exit.CANNOT_TELL if unsure else Exit.DONE


def conducted_on(
    view: View, base: Wanted, asked: Experiment, arms: Sequence[Arm], place: Place, *, why: str
) -> Told:
    """One run over all variants, with its journal."""
    from launcher.cli.changing import changing
    from launcher.flows.bench_run import Record
    from launcher.flows.experiment import conducted, restored
    from launcher.flows.layout_trials import Trials
    from launcher.load.bench import read_method
    from launcher.load.data import Data, roots_of

    with changing(base, view, flow="experiment", why=why, lock=base.wish.inventory.hosts, yes=True) as work:
        work.interrupt.changes_begin()
        journal = work.running.journal
        record = Record(work.running.listen, journal.keep, work.interrupt)
        trials = Trials(work.fleet, work.run(), record, journal.run, place)
        told = conducted(trials, asked, arms, read_method(Data(roots_of(place.data_dir))))
        restored(trials, base)
    return told


def leave(view: View, told: Told, folder: Path, data_dir: Path | None) -> None:
    """The report and the JSON, beside what was measured."""
    from launcher.cli.experimenttext import text
    from launcher.flows.experiment_report import document, pages
    from launcher.flows.report import write
    from launcher.load.data import Data, roots_of
    from launcher.record.whole import write_whole

    made = document(told)
    write_whole(folder / "report.json", json.dumps(made, indent=1) + os.linesep)
    paths = write(pages(told, Data(roots_of(data_dir))), folder)
    view.result("experiment", made, text(told))
    view.say(f"\nreport: {', '.join(map(str, paths)) or 'nothing was measured'}")
