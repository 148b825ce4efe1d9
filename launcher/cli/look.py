"""The commands that look and never change a host: status, logs, explain, runs."""

from __future__ import annotations

import os
import re
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.options import (
    DataDir,
    Every,
    InventoryArgument,
    InventoryOption,
    JsonLines,
    LogTime,
    UnitTarget,
)
from launcher.model.problem import Exit, InputError, Problem

if TYPE_CHECKING:
    from launcher.flows.logs import Entry, Priority


def status(
    inventory: InventoryArgument = None,
    watch: Annotated[
        bool,
        typer.Option("--watch", "-w", help="Look again every few seconds, and count tokens in between."),
    ] = False,
    every_s: Every = 5.0,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Show pools, instances, ranks and endpoints as they are. Exit 1 if anything is not up."""
    from launcher.cli.context import connected, deployment_of, read_wanted
    from launcher.cli.output import choose
    from launcher.flows import status as flow
    from launcher.rollout.planning import as_it_is
    from launcher.wait import looks

    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    deployment_of(wanted)
    now: flow.Status | None = None
    with connected(wanted) as fleet:
        for _ in looks(every_s):
            now = flow.status(fleet, wanted, deployment_of(as_it_is(fleet, wanted)), before=now)
            view.status(now)
            if not watch:
                break
    assert now, "it was looked at once"
    raise typer.Exit(Exit.DONE if now.serving else Exit.HOSTS_FAILED)


def logs(
    target: UnitTarget = "",
    inventory: InventoryOption = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines.")] = False,
    lines: Annotated[
        int | None,
        typer.Option(
            "--lines",
            "-n",
            metavar="N",
            min=0,
            help="The last N that are asked for, of each unit; default: 100, or all with --since.",
            show_default=False,
        ),
    ] = None,
    since: LogTime = "",
    until: Annotated[
        str, typer.Option("--until", metavar="WHEN", help="As --since.", show_default=False)
    ] = "",
    unit: Annotated[
        str,
        typer.Option(
            "--unit", "-u", metavar="WORD", help="Only units with this in their name: guard, router-a."
        ),
    ] = "",
    kernel: Annotated[bool, typer.Option("--kernel", "-k", help="The kernels of these hosts, too.")] = False,
    priority: Annotated[
        str,
        typer.Option(
            "--priority",
            "-p",
            metavar="LEVEL",
            help="Only err (or warning, crit...) and graver: by the journal, or by the line's own mark.",
            show_default=False,
        ),
    ] = "debug",
    grep: Annotated[
        str,
        typer.Option(
            "--grep", "-g", metavar="REGEX", help="Only lines in which this is found.", show_default=False
        ),
    ] = "",
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Show what units of a target say, with their guards, on all hosts, merged in time order."""
    from launcher.cli.context import connected, deployment_of, read_wanted
    from launcher.cli.output import choose
    from launcher.flows import logs as flow
    from launcher.flows.targets import units_of
    from launcher.health.marks import Marks
    from launcher.load.data import Data, roots_of
    from launcher.load.signatures import read_log_knowledge

    view = choose(json_lines=json_lines)
    if follow and until:
        what = "--follow waits for what is still to come, and --until ends before it"
        raise InputError(Problem(what, "--until", do="leave one of the two out"))
    now_s = time.time()
    selection = flow.Selection(
        lines if lines is not None else flow.lines_at_most if since else 100,
        flow.moment(since, now_s) if since else 0.0,
        flow.moment(until, now_s, option="--until") if until else float("inf"),
        pattern(grep),
        level(priority),
    )
    wanted = read_wanted(inventory, data_dir)
    units = flow.picked(units_of(deployment_of(wanted), target), unit, kernel=kernel)
    marks = Marks(read_log_knowledge(Data(roots_of(data_dir))).forms)
    failed = False
    told: tuple[Problem, ...] = ()
    with connected(wanted) as fleet:
        for found in flow.follow(fleet, units, selection, marks):
            for entry in found.entries:
                view.result("line", entry, line_of(entry))
            view.problems(tuple(p for p in found.problems if p not in told))
            told = found.problems
            failed = failed or bool(found.problems)
            if not follow:
                break
    raise typer.Exit(Exit.HOSTS_FAILED if failed else Exit.DONE)


def explain(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="SUBJECT",
            help="An instance, host, port, unit, directive of units, flag, JSON key, variable, step, rule, "
            "`router` or `front`.",
        ),
    ],
    inventory: InventoryArgument = None,
    named: InventoryOption = None,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Show a value, the file line that set it, what is done with it in this release, and the rules about it.

    Asks no host.
    """
    from launcher.cli.context import read_wanted
    from launcher.cli.explaintext import explain_text
    from launcher.cli.output import choose
    from launcher.flows import explain as flow

    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory or named, data_dir, secrets=False)
    topics = flow.explain(wanted, subject, data_dir=data_dir)
    if not json_lines:
        view.result("topics", None, explain_text(topics))
        return
    for topic in topics:
        for fact in topic.facts:
            view.result("fact", {"topic": topic.title, **asdict(fact)}, "")


def runs(
    name: Annotated[
        str,
        typer.Argument(metavar="RUN", help="Tell this run again; `last` is the newest.", show_default=False),
    ] = "",
    json_lines: JsonLines = False,
) -> None:
    """List what was done, by whom, with which result; or tell one run again."""
    from launcher.cli.output import choose
    from launcher.flows import runs as flow

    view = choose(json_lines=json_lines)
    if name:
        story = flow.show_run(os.environ, name)
        view.result("run", story, story.text())
        return
    for run in flow.list_runs(os.environ):
        told = f"{run.id:<30}  {run.cluster:<12}  {run.who:<10}  {run.result}"
        view.result("run", run, told + (f"  ({run.why})" if run.why else ""))


def line_of(entry: Entry) -> str:
    """One line of a log for people: time, host, unit, text."""
    clock = time.strftime("%m-%d %H:%M:%S", time.gmtime(entry.time_s))
    unit = entry.unit.removeprefix("dsv32-").removesuffix(".service")
    return f"{clock}.{int(entry.time_s % 1 * 1000):03d}  {entry.host} {unit:<15}  {entry.text}"


def level(word: str) -> Priority:
    """The priority of that name; InputError if there is none."""
    from launcher.flows.logs import PRIORITIES

    found = next((p for p in PRIORITIES if p == word), None)
    if found is None:
        do = f"one of: {', '.join(PRIORITIES)}"
        raise InputError(Problem(f"`{word}` is no priority", "--priority", do=do))
    return found


def pattern(text: str) -> re.Pattern[str] | None:
    """The regular expression, if one was given; InputError if it is none."""
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise InputError(
            Problem(
                f"`{text}` is no regular expression: {error}", "--grep", do="see the syntax of Python's re"
            )
        ) from None
