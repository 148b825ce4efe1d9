"""The command that works on files: lint."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from launcher.cli.options import DataDir, InventoryArgument, JsonLines
from launcher.model.problem import InputError, Problem

if TYPE_CHECKING:
    from launcher.cli.output import View
    from launcher.flows.lint import Report
    from launcher.model.rule import Rule


class Format(str, Enum):
    """How findings are written."""

    TEXT = "text"
    SARIF = "sarif"


def lint(
    inventory: InventoryArgument = None,
    foreign: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Look at a script, env file, unit, compose or Kubernetes file that starts vLLM.",
            show_default=False,
        ),
    ] = None,
    release: Annotated[
        str, typer.Option(metavar="X.Y.Z", help="vLLM's release there, if the files do not say.")
    ] = "",
    model: Annotated[str, typer.Option(metavar="NAME", help="Their model, from configs/models/.")] = "",
    hardware: Annotated[str, typer.Option(metavar="NAME", help="Their hosts, from configs/hardware/.")] = "",
    form: Annotated[Format, typer.Option("--format", help="For people, or for code hosts.")] = Format.TEXT,
    rules: Annotated[bool, typer.Option("--rules", help="List all rules, and look at nothing.")] = False,
    rule: Annotated[str, typer.Option(metavar="ID", help="Tell one rule whole, and try its samples.")] = "",
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Find everything that is wrong with an inventory, or with foreign launches. Asks no host.

    Exit 2 for errors, 3 for warnings alone. `accept:` of the inventory keeps a finding from counting.
    """
    from launcher.cli.output import choose
    from launcher.flows import lint as flow

    if form is Format.SARIF and (json_lines or rules or rule):
        what = "SARIF is one document with findings, it goes with none of --json, --rules and --rule"
        raise InputError(Problem(what, "--format sarif", do="leave out one of the two"))
    view = choose(json_lines=json_lines)
    if rules or rule:
        shown = [flow.rule_named(rule, data_dir=data_dir)] if rule else flow.rules(data_dir=data_dir)
        show_rules(view, shown, whole=bool(rule))
        if rule:
            try_rule(shown[0], data_dir)
        return
    from launcher.cli.context import chosen_inventory

    path = inventory if foreign else chosen_inventory(inventory)
    told = flow.Told(release=release, model=model, hardware=hardware)
    report = flow.lint(path, foreign or (), told=told, data_dir=data_dir)
    if form is Format.SARIF:
        from launcher.cli.sarif import sarif

        typer.echo(json.dumps(sarif(report), indent=2))
    else:
        show_report(view, report, ", ".join(map(str, filter(None, (path, *(foreign or ()))))))
    raise typer.Exit(report.exit_code)


def show_rules(view: View, rules: Sequence[Rule], *, whole: bool) -> None:
    """Each rule in a line, or whole."""
    from launcher.cli.findingtext import rule_lines, rule_row

    for rule in rules:
        view.result("rule", rule, "\n".join(rule_lines(rule)) if whole else rule_row(rule))


def try_rule(rule: Rule, data_dir: Path | None) -> None:
    """InputError where a rule does not do at its own samples what they say."""
    from launcher.flows.trial import trial

    if wrong := trial(rule, data_dir=data_dir):
        raise InputError(*wrong)


def show_report(view: View, report: Report, subject: str) -> None:
    """Problems, findings, then all in one line."""
    from launcher.cli.findingtext import finding_lines, open_lines, summary
    from launcher.cli.words import problem_lines

    view.problems(report.problems)
    for remark in report.remarks:
        view.result("remark", remark, "\n".join(problem_lines((remark,), severity="warning")))
    for finding in report.findings:
        text = "" if finding.state == "open" else "\n".join(finding_lines((finding,)))
        view.result("finding", finding, text)
    for line in open_lines(report.findings):
        view.say(line)
    told = {"subject": subject, "problems": len(report.problems), "findings": len(report.findings)}
    view.result("lint", {**told, "exit": report.exit_code.value}, summary(report, subject))
