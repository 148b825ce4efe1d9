"""Findings of checks as a person reads them; knows no colours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from launcher.cli.findingtext import rows
from launcher.cli.words import count
from launcher.flows.check import Report
from launcher.flows.preflight import what_of
from launcher.load.ranges import host_range
from launcher.model.check import Check, CheckFinding, Question


def check_lines(findings: Iterable[CheckFinding]) -> Iterator[str]:
    """What is wrong, errors first: what, where, why, who puts it right and how, and by which check."""
    order = ("error", "warning", "note")
    wrong = (f for f in findings if f.verdict == "wrong")
    for f in sorted(wrong, key=lambda f: order.index(f.check.severity)):
        yield f"{f.check.severity}: {what_of(f)}"
        yield from rows(
            ("where", host_range(f.hosts)),
            ("why", f.check.why),
            ("owner", f.check.owner),
            ("do", f.remedy),
            ("check", f.check.id),
        )


def open_lines(findings: Iterable[CheckFinding]) -> Iterator[str]:
    """What could not be told, by what is in the way and where."""
    waiting: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for f in findings:
        if f.verdict == "open":
            waiting.setdefault((f.what, f.hosts), []).append(f.check.id)
    for (what, hosts), ids in waiting.items():
        yield f"cannot tell on {host_range(hosts)}, for {what}: {', '.join(ids)}"


def summary(report: Report, subject: str) -> str:
    """`prod.yaml: 2 errors, 1 warning; 96 checks of 6 hosts`."""
    words = Counter(f.check.severity for f in report.findings if f.verdict == "wrong")
    told = [count(words[word], word) for word in ("error", "warning", "note") if words[word]]
    if report.unreached:
        told.append(f"{count(len(report.unreached), 'host')} not reached")
    asked = f"{count(len(report.checks), 'check')} of {count(len(report.hosts), 'host')}"
    return f"{subject}: {', '.join(told) or 'nothing wrong'}; {asked}"


def check_row(check: Check) -> str:
    """One check in a line."""
    return f"{check.severity:<8} {check.topic:<9} {check.id:<26} {check.owner:<14} {check.title}"


def explain_lines(check: Check) -> Iterator[str]:
    """One check whole."""
    assert isinstance(check.ask, Question)
    ask, expect = check.ask, check.expect
    tests = {name: getattr(expect, name) for name in expect.__slots__} if expect else {}
    wanted = [f"{name}: {value}" for name, value in tests.items() if value not in (None, (), False)]
    asked = {name: getattr(ask, name) for name in ask.__slots__ if name not in ("columns", "within_s")}
    words = [
        f"{name} {' '.join(value) if isinstance(value, tuple) else '' if value is True else value}".strip()
        for name, value in asked.items()
        if value
    ]
    yield f"{check.id}: {check.severity}, {check.title}"
    yield from rows(
        ("for", _for(check)),
        ("asks", " ".join(words)),
        ("reads", check.read or check.column),
        ("expects", ", ".join([*wanted, *([f"{check.across} on all hosts"] if check.across else [])])),
        ("needs", ", ".join(check.needs)),
        ("why", check.why),
        ("owner", check.owner),
        ("do", check.remedy),
        ("up", "refuses to begin with it, unless --despite " + check.id if check.refuses_up else ""),
        ("source", check.known_from),
        ("check", check.source),
    )


def _for(check: Check) -> str:
    words = [*check.hardware, *check.pools, *(f"role {role}" for role in check.roles)]
    each = "each engine process of " if check.each == "process" else ""
    idle = ", while no engine runs" if check.idle else ""
    return f"{each}{', '.join(words) or 'all'} hosts{idle}"
