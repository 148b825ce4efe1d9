"""sarif: a report of lint as SARIF 2.1.0, which code hosts and editors show beside the lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from launcher import __version__
from launcher.flows.lint import Report
from launcher.model.finding import RuleFinding
from launcher.model.problem import Problem
from launcher.model.rule import Rule

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
INPUT = "input"
"""The rule of what is wrong before any rule is asked: a file that cannot be read as what it is."""


def sarif(report: Report) -> dict[str, Any]:
    """One run: the rules, then a result for each Problem and each finding."""
    ids = [INPUT, *(rule.id for rule in report.rules)]
    results = (
        *(_problem(p, "error") for p in report.problems),
        *(_problem(p, "warning") for p in report.remarks),
        *(_finding(f, ids) for f in report.findings),
    )
    tool = {
        "name": "dsv32-launch",
        "version": __version__,
        "rules": [_input_rule(), *map(_rule, report.rules)],
    }
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": tool}, "columnKind": "unicodeCodePoints", "results": list(results)}],
    }


def _input_rule() -> dict[str, Any]:
    text = {"text": "a file cannot be read as what it is"}
    return {"id": INPUT, "shortDescription": text, "defaultConfiguration": {"level": "error"}}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.what},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{rule.fix}\nKnown from: {rule.known_from}"},
        "defaultConfiguration": {"level": rule.severity},
        "properties": {"since": rule.since, "until": rule.until},
    }


def _problem(problem: Problem, level: str) -> dict[str, Any]:
    text = "\n".join(filter(None, (problem.what, problem.why, problem.do)))
    places = [problem.where] if problem.where else []
    return {
        "ruleId": INPUT,
        "ruleIndex": 0,
        "level": level,
        "message": {"text": text},
        "locations": list(_locations(places)),
    }


def _finding(finding: RuleFinding, ids: Sequence[str]) -> dict[str, Any]:
    unsure = f"Depends on {finding.because}." if finding.state in ("depends", "open") else ""
    text = "\n".join(filter(None, (finding.what, unsure, finding.why, finding.fix)))
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": ids.index(finding.rule),
        "kind": "open" if finding.state == "open" else "fail",
        "level": {"open": "none", "depends": "note"}.get(finding.state, finding.severity),
        "message": {"text": text},
        "locations": list(_locations(finding.places)),
        "properties": {"launches": list(finding.launches), "state": finding.state},
    }
    if finding.state == "accepted":
        result["suppressions"] = [{"kind": "external", "justification": finding.because}]
    return result


def _locations(places: Sequence[str]) -> Iterator[dict[str, Any]]:
    """`path:line` each."""
    for place in places:
        path, _, line = place.rpartition(":")
        numbered = bool(path) and line.isdigit()
        physical: dict[str, Any] = {"artifactLocation": {"uri": quote(path if numbered else place)}}
        if numbered:
            physical["region"] = {"startLine": int(line)}
        yield {"physicalLocation": physical}
