"""What `check --load` and `check --compare` do: load checks on a fleet, two measurements side by side."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from launcher.model.problem import Exit, InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from launcher.cli.interrupt import Interrupt
    from launcher.cli.output import View
    from launcher.cli.running import Running
    from launcher.flows.check_load import Measured
    from launcher.model.load_check import LoadCheck, LoadFinding
    from launcher.model.wish import Wanted
    from launcher.remote.fleet import Fleet

KEPT = "load.json"
"""In a run's folder: what load checks measured."""


def loaded(
    view: View,
    names: list[str],
    where: tuple[Path | None, Path | None],
    *,
    limit: str,
    despite: bool,
    why: str,
) -> Exit:
    """Measure them; hosts are locked, and what is measured is kept after each check."""
    from launcher.cli.context import connected, read_wanted
    from launcher.cli.interrupt import Interrupt
    from launcher.cli.loadtext import finding_lines, summary
    from launcher.cli.operate import limit_of
    from launcher.cli.running import Running
    from launcher.flows.check_load import exit_of, load_checks, programs_of

    if despite and not why.strip():
        what = "no reason is given, and it slows what serves"
        raise InputError(Problem(what, "--why", do='check --load --despite -m "what it is for"'))
    checks = load_checks(names, data_dir=where[1])
    programs = programs_of(checks, data_dir=where[1])
    wanted = read_wanted(*where)
    meant = limit_of(wanted, limit, view).hosts
    hosts = tuple(host for host in wanted.wish.inventory.hosts if host in meant)
    with Running(wanted.wish, view, flow="check-load", why=why) as run:
        interrupt = Interrupt(run.left)
        with connected(wanted, run_id=run.id, why=why, lock=hosts) as fleet:
            measured = _measured(
                fleet, wanted, checks, hosts, programs, despite=despite, told=(run, view, interrupt)
            )
        code = exit_of(measured, interrupted=interrupt())
        run.ended(code, ())
    view.result("load-checks", {"checks": len(measured), "hosts": hosts}, "\n".join(finding_lines(measured)))
    view.say(summary(measured, wanted.wish.inventory.path))
    view.say(f"kept: {run.journal.folder / KEPT}")
    return code


def _measured(
    fleet: Fleet,
    wanted: Wanted,
    checks: tuple[LoadCheck, ...],
    hosts: tuple[str, ...],
    programs: Mapping[str, bytes],
    *,
    despite: bool,
    told: tuple[Running, View, Interrupt],
) -> list[Measured]:
    from launcher.checks.loadkept import document, kept
    from launcher.checks.meetings import planned
    from launcher.cli.loadtext import row
    from launcher.flows import check_load as flow

    run, view, interrupt = told
    if not despite:
        flow.refuse_serving(fleet, wanted, hosts)
    plans = planned(checks, wanted, hosts)
    flow.refuse_others(fleet, plans, hosts)
    interrupt.changes_begin()
    found: list[Measured] = []
    for plan in plans:
        if interrupt():
            break
        measured = flow.measure(
            fleet,
            wanted,
            plan.check,
            hosts,
            programs=programs,
            listener=run.listen,
            interrupted=interrupt,
        )
        found.append(measured)
        view.result("load-check", shown(measured), row(measured))
        texts = [(kept(one.check, one.figures), one.findings) for one in found]
        run.journal.keep(KEPT, document(run.id, wanted.wish.inventory.cluster, texts))
    return found


def shown(measured: Measured) -> dict[str, object]:
    """A check for programs."""
    check = measured.check
    return {
        "id": check.id,
        "unit": check.unit,
        "median": measured.usual,
        "figures": [asdict(f) for f in measured.figures],
        "findings": [_finding(f) for f in measured.findings],
    }


def _finding(finding: LoadFinding) -> dict[str, object]:
    check = finding.check
    return {
        "severity": finding.severity,
        "verdict": finding.verdict,
        "ends": [[end.host, end.part] for end in finding.ends],
        "what": finding.what,
        "owner": check.owner,
        "remedy": check.remedy,
        "why": check.why,
        "known_from": check.known_from,
    }


def compared(view: View, names: tuple[str, str]) -> Exit:
    """Two runs' measurements, check by check. Exit 3 where something got worse."""
    import os

    from launcher.checks.loadkept import compare, read_back
    from launcher.cli.loadtext import compared_lines
    from launcher.record import runs_folder
    from launcher.record.runs import kept_text

    texts = [kept_text(runs_folder(os.environ), name, KEPT) for name in names]
    before, after = (read_back(text, str(path)) for path, text in texts)
    found = compare(before, after)
    if not found:
        raise InputError(Problem("the two have no load check in common", " and ".join(names)))
    for one in found:
        view.result("compared", asdict(one), "\n".join(compared_lines(one)))
    worse = any(moved.word == "worse" for one in found for moved in one.moved)
    return Exit.WARNINGS if worse else Exit.DONE


def listed(view: View, checks: tuple[LoadCheck, ...], name: str) -> None:
    """A line for each, or one whole."""
    from launcher.cli.loadtext import check_row, explain_lines
    from launcher.load.schema import near

    by_id = {check.id: check for check in checks}
    if name and name not in by_id:
        raise InputError(Problem(f"no load check is called `{name}`", "--explain", do=near(name, by_id)))
    for one in [by_id[name]] if name else checks:
        view.result("load-check", asdict(one), "\n".join(explain_lines(one)) if name else check_row(one))
