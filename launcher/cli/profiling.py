"""The command that shows where an engine's time goes: profile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.options import DataDir, InventoryOption, JsonLines, Why
from launcher.model.problem import InputError, Problem

if TYPE_CHECKING:
    from launcher.cli.output import View
    from launcher.flows.profile import Asked
    from launcher.model.trace import Capture, RankTime
    from launcher.model.wish import Wanted


def profile(
    instance: Annotated[
        str, typer.Argument(metavar="INSTANCE", help="An instance, as `status` shows it.", show_default=False)
    ] = "",
    seconds: Annotated[
        float, typer.Option("--for", metavar="S", min=0.1, help="Seconds to record; a load is yours to put.")
    ] = 2.0,
    ranks: Annotated[
        str, typer.Option(metavar="GLOB", help="Which processes' traces to fetch: `* dp0_*`, `gpu05 *`.")
    ] = "*",
    from_files: Annotated[
        list[Path] | None,
        typer.Option("--from", metavar="FILE", help="Traces that are here; ask no host.", show_default=False),
    ] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Traces of another capture to compare with.", show_default=False),
    ] = None,
    why: Why = "",
    inventory: InventoryOption = None,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Record what each process of an instance does, fetch that, and add up where the time went.

    It slows the instance while it records and writes, so a reason is asked for.
    """
    from launcher.cli.output import choose
    from launcher.cli.profiletext import difference, text
    from launcher.flows.profile import times
    from launcher.load.data import Data, roots_of
    from launcher.load.traces import read_capture

    capture = read_capture(Data(roots_of(data_dir)))
    view = choose(json_lines=json_lines)
    if bool(instance) == bool(from_files):
        what = "an instance and --from are given" if instance else "neither an instance nor --from is given"
        raise InputError(Problem(what, "INSTANCE", do="profile decode-0 -m WHY, or profile --from FILE"))
    if from_files:
        found = times({path.name: path for path in from_files}, capture)
    else:
        found = recorded(view, instance, capture, seconds, ranks, why=why, where=(inventory, data_dir))
    view.result("profile", found, text(found))
    if against:
        before = times({path.name: path for path in against}, capture)
        view.result("against", before, "\n" + difference(before, found))


def recorded(
    view: View,
    name: str,
    capture: Capture,
    seconds: float,
    ranks: str,
    *,
    why: str,
    where: tuple[Path | None, Path | None],
) -> tuple[RankTime, ...]:
    """One capture on the fleet; its traces stay in the run's folder."""
    from launcher.cli.context import deployment_of, read_wanted
    from launcher.flows.profile import asked_of

    if not why.strip():
        what = "no reason is given, and it slows an instance that serves"
        raise InputError(Problem(what, "--why", do=f'profile {name} -m "what it is for"'))
    if seconds > capture.most_s:
        what = f"{seconds:g} s are to be recorded, at most {capture.most_s:g} may be"
        raise InputError(Problem(what, "--for", capture.source, do=f"--for {capture.most_s:g}, or less"))
    wanted = read_wanted(*where)
    engine = wanted.wish.profile.engine
    assert engine, "what serves has an engine"
    asked = asked_of(deployment_of(wanted), engine, name)
    return _on_hosts(view, wanted, asked, capture, seconds, ranks, why)


def _on_hosts(
    view: View, wanted: Wanted, asked: Asked, capture: Capture, seconds: float, ranks: str, why: str
) -> tuple[RankTime, ...]:
    from launcher.cli.changing import changing
    from launcher.flows import profile as flow
    from launcher.wait import never, wait_for

    with changing(wanted, view, flow="profile", why=why, lock=asked.instance.hosts, yes=True) as work:
        work.interrupt.changes_begin()

        def wait() -> None:
            wait_for(never, bool, every_s=0.1, within_s=seconds, interrupted=work.interrupt)

        left = flow.captured(work.fleet, asked, capture, wait=wait, listener=work.running.listen)
        folder = work.running.journal.folder / "traces"
        here = {t.label: flow.fetched(work.fleet, t, capture, folder) for t in flow.chosen(left, ranks)}
        found = flow.times(here, capture)
    view.say(f"traces: {folder}; on the hosts: {asked.folder}")
    return found
