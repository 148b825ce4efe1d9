"""The command that looks at what hosts must be: check."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.options import DataDir, InventoryArgument, JsonLines, Limit, Why
from launcher.model.problem import Exit, InputError, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from launcher.cli.output import View
    from launcher.model.check import Check, CheckFinding


def check(
    inventory: InventoryArgument = None,
    only: Annotated[
        str,
        typer.Option("--only", metavar="NAME,...", help="Only these topics or checks.", show_default=False),
    ] = "",
    limit: Limit = "",
    listed: Annotated[bool, typer.Option("--list", help="List the checks there are; asks no host.")] = False,
    told: Annotated[
        str,
        typer.Option(
            "--explain", metavar="ID", help="Tell one check whole; asks no host.", show_default=False
        ),
    ] = "",
    load: Annotated[
        bool, typer.Option("--load", help="Measure instead what hosts can do under load, alone and in pairs.")
    ] = False,
    despite: Annotated[
        bool, typer.Option("--despite", help="--load even where something serves; needs --why.")
    ] = False,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="RUN RUN", help="Two runs of --load side by side; asks no host.", show_default=False
        ),
    ] = None,
    why: Why = "",
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Ask what must hold on hosts and between them: hardware, drivers, kernel, network, storage, software.

    Changes nothing; exit 1 for an error, 3 for warnings. With --load programs run on the hosts, as jobs.
    """
    from launcher.cli.output import choose
    from launcher.flows.check import all_checks, named

    view = choose(json_lines=json_lines)
    names = [name.strip() for name in only.split(",") if name.strip()]
    if compare:
        from launcher.cli.loading import compared

        raise typer.Exit(compared(view, compare))
    if load:
        raise typer.Exit(
            under_load(
                view, names, told, inventory, data_dir, listed=listed, limit=limit, despite=despite, why=why
            )
        )
    known = all_checks(data_dir=data_dir)
    if listed or told:
        show(view, named(names, known) if names else known, told)
        return
    raise typer.Exit(asked(view, named(names, known), inventory, data_dir, limit))


def under_load(
    view: View,
    names: list[str],
    told: str,
    inventory: Path | None,
    data_dir: Path | None,
    *,
    listed: bool,
    limit: str,
    despite: bool,
    why: str,
) -> Exit:
    """List or tell load checks, or run them."""
    from launcher.cli import loading

    if listed or told:
        from launcher.flows.check_load import every, load_checks

        loading.listed(
            view, load_checks(names, data_dir=data_dir) if names else every(data_dir=data_dir), told
        )
        return Exit.DONE
    return loading.loaded(view, names, (inventory, data_dir), limit=limit, despite=despite, why=why)


def asked(
    view: View, checks: tuple[Check, ...], inventory: Path | None, data_dir: Path | None, limit: str
) -> Exit:
    """Ask them, and say what is wrong."""
    from launcher.cli.checktext import check_lines, open_lines, summary
    from launcher.cli.context import connected, reached
    from launcher.cli.operate import limit_of
    from launcher.flows import check as flow
    from launcher.flows.preflight import what_of

    with reached(inventory, data_dir, ahead=not limit) as (wanted, connections):
        hosts = limit_of(wanted, limit, view).hosts
        with connected(wanted, over=connections) as fleet:
            report = flow.check(fleet, wanted, checks, hosts)
    texts = [*check_lines(report.findings), *open_lines(report.findings)]
    for finding in report.findings:
        view.result("check", document(finding, what_of(finding)), "")
    view.result("checks", {"checks": len(report.checks), "hosts": report.hosts}, "\n".join(texts))
    view.problems(report.unreached)
    view.say(summary(report, wanted.wish.inventory.path))
    return report.exit_code


def show(view: View, checks: tuple[Check, ...], name: str) -> None:
    """One check whole, or a line for each."""
    from launcher.cli.checktext import check_row, explain_lines
    from launcher.load.schema import near

    by_id = {check.id: check for check in checks}
    if name and name not in by_id:
        raise InputError(Problem(f"no check is called `{name}`", "--explain", do=near(name, by_id)))
    for one in [by_id[name]] if name else checks:
        text = "\n".join(explain_lines(one)) if name else check_row(one)
        view.result("check", asdict(one), text)


def document(finding: CheckFinding, what: str) -> dict[str, object]:
    """A finding for programs."""
    check = finding.check
    return {
        "id": check.id,
        "topic": check.topic,
        "severity": check.severity,
        "verdict": finding.verdict,
        "hosts": finding.hosts,
        "what": what,
        "groups": [{"answer": text, "hosts": hosts} for text, hosts in finding.groups],
        "owner": check.owner,
        "remedy": finding.remedy,
        "why": check.why,
        "known_from": check.known_from,
    }
