"""The commands that say who may change the fleet, and who did: lock, unlock, audit."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.options import DataDir, InventoryOption, JsonLines, Why
from launcher.model.problem import Exit, InputError, Problem

if TYPE_CHECKING:
    from launcher.flows.audit import Deed, RunDeeds


def lock(
    why: Why = "",
    inventory: InventoryOption = None,
    lasting: Annotated[
        str,
        typer.Option("--for", metavar="TIME", help="30m, 2h, 1d; default: until unlock.", show_default=False),
    ] = "",
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Keep the fleet to yourself: runs of others that would change it are refused, yours go on.

    Again by the same person, it is renewed. A run that is under way comes to its end.
    """
    from launcher.cli.changing import changing
    from launcher.cli.context import read_wanted
    from launcher.cli.output import choose
    from launcher.flows import hold as flow
    from launcher.model.hold import Hold
    from launcher.record import person

    if not why.strip():
        raise InputError(Problem("no reason is given", "--why", do='lock -m "what it is for"'))
    now_s = time.time()
    until = stamp(now_s + flow.seconds_in(lasting)) if lasting else ""
    hold = Hold(person(os.environ), socket.gethostname(), stamp(now_s), why.strip(), until)
    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    with changing(wanted, view, flow="lock", why=why, lock=(), yes=True) as work:
        work.ended(failed=flow.hold(work.fleet, wanted.wish.inventory.hosts, hold, work.running.listen))
    view.result("hold", hold, f"{wanted.wish.inventory.cluster}: {hold}")
    raise typer.Exit(work.code)


def unlock(
    why: Why = "",
    inventory: InventoryOption = None,
    force: Annotated[bool, typer.Option("--force", help="Also what somebody else holds; say why.")] = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Give up what `lock` holds."""
    from launcher.cli.changing import changing
    from launcher.cli.context import read_wanted
    from launcher.cli.output import choose
    from launcher.flows import hold as flow
    from launcher.record import person

    if force and not why.strip():
        raise InputError(Problem("no reason is given", "--force", do='unlock --force -m "why"'))
    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    hosts, who = wanted.wish.inventory.hosts, person(os.environ)
    with changing(wanted, view, flow="unlock", why=why, lock=(), yes=True) as work:
        now, listen = stamp(time.time()), work.running.listen
        holds, problems = flow.give_up(work.fleet, hosts, who, now, listen, force=force)
        work.ended(failed=problems)
    told = "\n".join(f"no longer {hold}" for hold in holds) or "nobody held it"
    view.result("unlock", {"holds": holds}, told)
    raise typer.Exit(work.code)


def audit(
    host: Annotated[
        str,
        typer.Argument(
            metavar="HOST",
            help="Each operation on this host; left out: a line for each run on all hosts.",
            show_default=False,
        ),
    ] = "",
    inventory: InventoryOption = None,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Show who did what, when and why: what hosts have written down, and the runs of this controller."""
    from launcher.cli.context import connected, read_wanted
    from launcher.cli.output import choose
    from launcher.flows import audit as flow
    from launcher.flows.targets import unknown

    view = choose(json_lines=json_lines)
    wanted = read_wanted(inventory, data_dir)
    hosts = wanted.wish.inventory.hosts
    if host and host not in hosts:
        raise InputError(unknown(host, "host", sorted(hosts)))
    with connected(wanted) as fleet:
        deeds, problems = flow.read_deeds(fleet, [host] if host else hosts)
    if host:
        for deed in deeds:
            view.result("deed", deed, deed_line(deed))
    else:
        for run in flow.by_run(deeds, os.environ, cluster=wanted.wish.inventory.cluster):
            view.result("run", run, run_line(run))
    view.problems(problems)
    raise typer.Exit(Exit.HOSTS_FAILED if problems else Exit.DONE)


def deed_line(deed: Deed) -> str:
    """When, who, in which run, what, how it ended."""
    end = "" if deed.result == "done" else "  has no end" if deed.result == "begun" else f"  {deed.result}"
    why = f"  ({deed.why})" if deed.why else ""
    return f"{shown(deed.time_s)}  {deed.who:<10} {deed.run:<28}  {deed.op} {deed.target}{end}{why}"


def run_line(run: RunDeeds) -> str:
    """When, who from where, which run, on which hosts how much, how it ended."""
    from launcher.cli.words import count
    from launcher.load.ranges import host_range

    parts = [f"{count(sum(run.done.values()), 'op')} on {host_range(run.done)}"] if run.done else []
    if run.failed:
        parts.append(f"{sum(run.failed.values())} not done on {host_range(run.failed)}")
    parts.append(run.result or "not of this controller's runs")
    why = f"  ({run.why})" if run.why else ""
    return f"{shown(run.time_s)}  {run.who:<10} {run.where_from:<14} {run.run:<28}  {', '.join(parts)}{why}"


def shown(time_s: float) -> str:
    """`11-29 18:05:09`, UTC."""
    return time.strftime("%m-%d %H:%M:%S", time.gmtime(time_s))


def stamp(time_s: float) -> str:
    """`2026-11-29T18:05:09Z`."""
    from launcher.model.hold import TIME

    return time.strftime(TIME, time.gmtime(time_s))
