"""The command that measures: bench."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.options import DataDir, InventoryArgument, JsonLines, Why
from launcher.model.bench import Axis, Measured, Verdict, worst
from launcher.model.problem import Exit, InputError, Problem

if TYPE_CHECKING:
    from launcher.cli.running import Running
    from launcher.flows.bench import Searched
    from launcher.flows.bench_run import Bench
    from launcher.load.data import Data
    from launcher.model.measurement import Found
    from launcher.model.sla import Sla, Workload
    from launcher.model.wish import Wanted

SMOKE = "smoke"
EXITS: Mapping[Verdict, Exit] = {
    "PASS": Exit.DONE,
    "FAIL": Exit.SLA_MISSED,
    "CANNOT TELL": Exit.CANNOT_TELL,
}


def bench(
    workload: Annotated[
        str, typer.Argument(metavar="WORKLOAD", help="From configs/workloads/; --list shows them.")
    ] = SMOKE,
    inventory: InventoryArgument = None,
    sla: Annotated[
        str,
        typer.Option(metavar="NAME", help="From configs/slas/; else the workload's.", show_default=False),
    ] = "",
    concurrency: Annotated[
        str,
        typer.Option(
            metavar="N,...", help="Requests at once, for the workload's; each is a point.", show_default=False
        ),
    ] = "",
    rate: Annotated[
        float,
        typer.Option(metavar="R", min=0.0, help="Requests a second, for the workload's.", show_default=False),
    ] = 0.0,
    repeat: Annotated[
        int, typer.Option(metavar="N", min=1, help="Runs at each point, each with another seed.")
    ] = 1,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of the first run.")] = 1,
    target: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="`service`, a pool or an instance; else the workload's.",
            show_default=False,
        ),
    ] = "",
    search: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="`concurrency` or `rate`: find the highest that keeps the service level.",
            show_default=False,
        ),
    ] = "",
    listing: Annotated[
        bool, typer.Option("--list", help="List workloads and service levels; measure nothing.")
    ] = False,
    definitions: Annotated[
        bool, typer.Option("--definitions", help="Say what each figure means; measure nothing.")
    ] = False,
    why: Why = "",
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Put a load on what serves; hold the figures against its service level. Exit 5: missed; 3: cannot tell.

    `vllm bench serve` runs on a host of the fleet, as a job; nothing but its files is changed there.
    """
    from launcher.bench.keep import found_of, point_of
    from launcher.bench.measure import DEFINITIONS
    from launcher.cli.benchtext import found, text
    from launcher.cli.changing import changing
    from launcher.cli.context import deployment_of, read_wanted
    from launcher.cli.output import choose
    from launcher.flows import bench as flow
    from launcher.flows.bench_run import Record
    from launcher.load.bench import read_method, read_telemetry
    from launcher.load.data import Data, roots_of
    from launcher.rollout.planning import respecting

    view, data = choose(json_lines=json_lines), Data(roots_of(data_dir))
    if listing:
        for kind, value, line in listed(data):
            view.result(kind, value, line)
        return
    if definitions:
        view.result("definitions", {"text": DEFINITIONS}, DEFINITIONS.rstrip())
        return
    asked, level = chosen(data, workload, sla, concurrency=concurrency, rate=rate)
    axis = axis_of(search, asked, level)
    method = read_method(data)
    wanted = read_wanted(inventory, data_dir)
    deployment_of(wanted)
    searched = None
    measured: list[Measured] = []
    with changing(wanted, view, flow="bench", why=why, lock=(), yes=True) as work:
        fleet, run = work.fleet, work.running
        here = respecting(fleet, wanted)
        more = {"seed": seed, "repeats": repeat, "salt": run.id, "telemetry": read_telemetry(data)}
        made = flow.bench_of(here, asked, level, method, target=target or asked.target, **more)
        fleet.lock([made.target.host])
        flow.refuse_silent(fleet, made)
        work.interrupt.changes_begin()

        def told(point: Measured) -> None:
            measured.append(point)
            keep(run, here, made, measured)

        record = Record(run.listen, run.journal.keep, work.interrupt, told)
        if axis:
            start = start_of(axis, asked)
            searched = flow.search(fleet, made, axis, start=start, record=record)
            keep(run, here, made, measured, found_of(axis, searched.answer))
        else:
            flow.ladder(fleet, made, record)
        work.ended(code=exit_of(measured, searched))
    for point in measured if json_lines else ():
        view.result("point", point_of(point, made.target), "")
    kept = str(run.journal.folder / "bench.json") if measured else ""
    view.result("bench", {"path": kept}, text(made, measured))
    if searched:
        view.result("search", searched.answer, found(searched))
    if kept:
        view.say(f"kept: {kept}")
    raise typer.Exit(work.code)


def keep(
    run: Running, wanted: Wanted, bench: Bench, measured: Sequence[Measured], search: Found | None = None
) -> None:
    """All that was measured so far, in the run's folder: after each point, whatever comes after it."""
    from launcher.bench.keep import document
    from launcher.flows.bench import measurement

    made = measurement(bench, wanted, run.journal.run, measured, search)
    run.journal.keep("bench.json", document(made))


def listed(data: Data) -> Iterator[tuple[str, object, str]]:
    """Each workload and service level: its kind, itself, and a line for people."""
    from launcher.load.choice import Choice, names
    from launcher.load.sla import read_sla, read_workload
    from launcher.model.sla import Sla, Workload

    for name in names(Workload, data):
        workload, _ = read_workload(Choice(name, "--list"), data)
        tokens = f"{workload.input_tokens} + {workload.output_tokens}"
        yield "workload", workload, f"{name:<18}  {tokens:<11}  {workload.about}"
    for name in names(Sla, data):
        level = read_sla(Choice(name, "--list"), data)
        yield "sla", level, f"{name:<18}  {'limits':<11}  {limits_of(level)}"


def limits_of(level: Sla) -> str:
    """`ttft_ms mean ≤ 3000, …`."""
    return ", ".join(
        f"{name} {limit.of} ≤ {limit.at_most:g}"
        if limit.at_most is not None
        else f"{name} ≥ {limit.at_least:g}"
        for name, limit in level.limits.items()
    )


def chosen(
    data: Data, workload: str, sla: str, *, concurrency: str, rate: float
) -> tuple[Workload, Sla | None]:
    """The load and the service level that are meant, with what options change of them."""
    from launcher.load.choice import Choice
    from launcher.load.sla import read_sla, read_workload

    asked, level = read_workload(Choice(workload, "WORKLOAD"), data)
    if sla:
        level = read_sla(Choice(sla, "--sla"), data)
    ladder = numbers(concurrency) or asked.concurrency
    return replace(asked, concurrency=ladder, request_rate=rate or asked.request_rate), level


def numbers(given: str) -> tuple[int, ...]:
    """`4,8,16`; InputError for anything else."""
    words = [word.strip() for word in given.split(",") if word.strip()]
    if not all(word.isdecimal() and int(word) for word in words):
        what = f"`{given}` is no list of requests at once"
        raise InputError(
            Problem(what, "--concurrency", do="write whole numbers from 1: --concurrency 4,8,16")
        )
    return tuple(int(word) for word in words)


def axis_of(given: str, workload: Workload, level: Sla | None) -> Axis | None:
    """What is searched; None: nothing. InputError for another word, or without a service level."""
    axes: tuple[Axis, ...] = ("concurrency", "rate")
    if not given:
        return None
    axis = next((a for a in axes if a == given), None)
    if axis is None:
        what = f"`{given}` is nothing to search, expected one of {', '.join(axes)}"
        raise InputError(Problem(what, "--search", do="write one of these"))
    if level is None:
        what = f"workload {workload.name} has no service level that a load could keep"
        raise InputError(Problem(what, workload.source, do="name one: --sla article"))
    return axis


def start_of(axis: Axis, workload: Workload) -> float:
    """Where a search begins: at the lowest load that was named, else at one."""
    return workload.request_rate or 1.0 if axis == "rate" else float(min(workload.concurrency, default=1))


def exit_of(measured: Sequence[Measured], searched: Searched | None) -> Exit:
    """Of a search: whether there is a confirmed value; else the worst verdict of all points."""
    if searched is None:
        return EXITS[worst(m.verdict for m in measured)]
    answer = searched.answer
    if answer.highest is not None:
        return Exit.DONE if answer.confirmed else Exit.CANNOT_TELL
    return EXITS[answer.next_up.verdict] if answer.next_up else Exit.CANNOT_TELL
