"""The command that looks for a better layout: tune."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.options import DataDir, InventoryOption, JsonLines, Why, Yes
from launcher.model.problem import Exit, InputError, Problem

if TYPE_CHECKING:
    from launcher.cli.output import View
    from launcher.flows.layout_trials import Place
    from launcher.flows.tune_live import Terms
    from launcher.flows.tune_records import Tuned
    from launcher.load.data import Data
    from launcher.model.tune import Decision
    from launcher.model.wish import Wanted


def tune(
    name: Annotated[
        str,
        typer.Argument(metavar="TUNE", help="From configs/tunes/; --list shows them.", show_default=False),
    ] = "",
    records: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="RECORDS",
            help="Decide by what is on record, from configs/records/ or a file; ask no host.",
            show_default=False,
        ),
    ] = "",
    sla: Annotated[
        str,
        typer.Option(metavar="NAME", help="From configs/slas/; else the workload's.", show_default=False),
    ] = "",
    into: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="For layout, report and figures, and to go on from; default: tuned/CLUSTER-TUNE.",
            show_default=False,
        ),
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List tunes and records; change nothing.")] = False,
    why: Why = "",
    inventory: InventoryOption = None,
    yes: Yes = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Try one change of a layout after the other; keep what is better by more than noise, and keeps its SLA.

    Each layout is brought up and measured. Given again it goes on where it was killed.
    """
    from launcher.cli.output import choose
    from launcher.load.data import Data, roots_of

    view, data = choose(json_lines=json_lines), Data(roots_of(data_dir))
    if listing:
        list_all(view, data)
        return
    if bool(name) == bool(records):
        what = "neither a tune nor --from is given" if not name else f"tune {name} and --from are both given"
        do = "dsv32-launch tune prefill, or tune --from article-prefill; --list shows what there is"
        raise InputError(Problem(what, "TUNE", do=do))
    if records and sla:
        what = "records keep the service level that they were measured for"
        raise InputError(Problem(what, "--sla", do="leave out --sla, or --from, which measures nothing"))
    if records:
        raise typer.Exit(by_records(view, records, data, into, data_dir))
    raise typer.Exit(
        on_fleet(view, name, sla, into, inventory=inventory, data_dir=data_dir, why=why, yes=yes)
    )


def list_all(view: View, data: Data) -> None:
    """Each tune with its path, and each record."""
    from launcher.cli.tunetext import path_text
    from launcher.load.choice import Choice, names
    from launcher.load.tunes import read_records, read_tune
    from launcher.model.tune import Records, Tune

    for name in names(Tune, data):
        tune = read_tune(Choice(name, "--list"), data)
        view.result("tune", tune, path_text(tune) + "\n")
    for name in names(Records, data):
        records, _ = read_records(name, data)
        view.result("records", records, f"--from {name}: {records.about}")


def by_records(view: View, records: str, data: Data, into: Path | None, data_dir: Path | None) -> Exit:
    """The path over what was recorded."""
    from launcher.flows.layout_trials import require_folder
    from launcher.flows.tune_records import replayed
    from launcher.load.tunes import read_records

    told, tune = read_records(records, data)
    folder = into or Path("tuned") / told.name
    require_folder(folder)
    with tempfile.TemporaryDirectory(prefix="dsv32-tune-") as made:
        found = replayed(told, tune, data_dir=data_dir, folder=Path(made))
    leave(view, found, folder, name=f"{found.begun_with}-tuned")
    return Exit.DONE


def on_fleet(
    view: View,
    name: str,
    sla: str,
    into: Path | None,
    *,
    inventory: Path | None,
    data_dir: Path | None,
    why: str,
    yes: bool,
) -> Exit:
    """The path with layouts that are brought up and measured."""
    from launcher.cli.context import chosen_inventory, deployment_of, read_wanted
    from launcher.cli.operate import agreed
    from launcher.cli.tunetext import path_text
    from launcher.flows.layout_trials import Place, require_folder

    base = read_wanted(inventory, data_dir)
    deployment_of(base)
    terms = terms_of(name, sla, data_dir)
    cluster, layout = base.wish.inventory.cluster, base.wish.inventory.layout
    folder = into or Path("tuned") / f"{cluster}-{name}"
    last = f"{layout.removesuffix('-tuned')}-tuned"
    require_folder(folder)
    place = Place(folder, last, chosen_inventory(inventory), data_dir)
    view.say(path_text(terms.tune))
    view.say(f"\neach step starts pool {terms.tune.pool} of {cluster} anew; it ends with the best layout up")
    if not agreed("Tune?", yes=yes):
        return Exit.DONE
    found = measured(view, base, terms, place, why=why)
    leave(view, found, folder, name=last)
    return Exit.DONE


def terms_of(name: str, sla: str, data_dir: Path | None) -> Terms:
    """The tune, its workload, and the service level that is meant."""
    from launcher.flows.tune_live import Terms
    from launcher.load.bench import read_method
    from launcher.load.choice import Choice
    from launcher.load.data import Data, roots_of
    from launcher.load.sla import read_sla, read_workload
    from launcher.load.tunes import read_tune

    data = Data(roots_of(data_dir))
    tune = read_tune(Choice(name, "TUNE"), data)
    workload, level = read_workload(Choice(tune.workload, tune.source), data)
    if sla:
        level = read_sla(Choice(sla, "--sla"), data)
    return Terms(tune, workload, level, read_method(data))


def measured(view: View, base: Wanted, terms: Terms, place: Place, *, why: str) -> Tuned:
    """One run over the whole path, with its journal."""
    from launcher.cli.changing import changing
    from launcher.flows.bench_run import Record
    from launcher.flows.layout_trials import Trials
    from launcher.flows.tune_live import Live, tuned

    def told(decision: Decision) -> None:
        view.result("decision", decision, f"{decision.step}: {decision.outcome}: {decision.reason}")

    with changing(base, view, flow="tune", why=why, lock=base.wish.inventory.hosts, yes=True) as work:
        work.interrupt.changes_begin()
        journal = work.running.journal
        record = Record(work.running.listen, journal.keep, work.interrupt)
        trials = Trials(work.fleet, work.run(), record, journal.run, place)
        return tuned(Live(trials, terms), base, told)


def leave(view: View, found: Tuned, folder: Path, *, name: str) -> None:
    """The layout, as a data folder that `plan` takes, and the report beside it."""
    from launcher.cli.tunetext import document, markdown, text
    from launcher.flows.tune import text_of
    from launcher.record.whole import write_whole

    layout = folder / "configs" / "layouts" / f"{name}.yaml"
    write_whole(layout, text_of(found.way, found.tune, begun_with=found.begun_with))
    told = document(found, layout=str(layout))
    write_whole(folder / "report.md", markdown(found, layout=f"`{layout}`"))
    write_whole(folder / "report.json", json.dumps(told, indent=1) + os.linesep)
    view.result("tuned", told, text(found))
    view.say(f"\nlayout: {layout}; report: {folder / 'report.md'}")
    view.say(f"next: write `layout: {name}` into the inventory; dsv32-launch plan --data-dir {folder}")
