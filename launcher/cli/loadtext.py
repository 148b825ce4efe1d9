"""What load checks measured and found, as a person reads it; knows no colours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from launcher.checks.loadkept import Compared, Moved
from launcher.cli.findingtext import rows
from launcher.cli.words import count
from launcher.flows.check_load import Measured
from launcher.load.ranges import host_range
from launcher.model.load_check import End, LoadCheck, LoadFinding

SHOWN = 8
"""Measurements of one check that are listed; the rest is counted."""


def where_of(ends: Sequence[End]) -> str:
    """`gpu03`, `gpu03 mlx5_4`, or `mlx5_4 of all hosts`."""
    if all(end.host and not end.part for end in ends):
        return host_range(end.host for end in ends)
    return ", ".join(str(end) if end.host else f"{end.part} of all hosts" for end in ends)


def finding_lines(measured: Iterable[Measured]) -> Iterator[str]:
    """What is wrong, errors first, then what could not be measured."""
    findings = [f for one in measured for f in one.findings]
    for word in ("error", "warning"):
        for f in (f for f in findings if f.verdict == "wrong" and f.severity == word):
            yield from _lines(f)
    for f in (f for f in findings if f.verdict == "open"):
        yield f"cannot tell on {where_of(f.ends)}, for {f.what}: {f.check.id}"
        yield from rows(("do", f.check.install))


def _lines(finding: LoadFinding) -> Iterator[str]:
    yield f"{finding.severity}: {finding.check.title}: {finding.what}"
    yield from rows(
        ("where", where_of(finding.ends)),
        ("why", finding.check.why),
        ("owner", finding.check.owner),
        ("do", finding.check.remedy),
        ("check", finding.check.id),
    )


def row(measured: Measured) -> str:
    """One check in a line: how many measurements, the least, the usual and the most."""
    values = sorted(f.value for f in measured.figures if f.value is not None)
    check = measured.check
    if not values or measured.usual is None:
        return f"{check.id:<20} nothing measured"
    times = count(len(measured.figures), "measurement")
    return f"{check.id:<20} {values[0]:.4g} … {measured.usual:.4g} … {values[-1]:.4g} {check.unit}, {times}"


def summary(measured: Sequence[Measured], subject: str) -> str:
    """`prod.yaml: 1 error, 2 warnings; 5 load checks`."""
    wrong = [f.severity for one in measured for f in one.findings if f.verdict == "wrong"]
    told = [count(wrong.count(word), word) for word in ("error", "warning") if word in wrong]
    return f"{subject}: {', '.join(told) or 'nothing wrong'}; {count(len(measured), 'load check')}"


def check_row(check: LoadCheck) -> str:
    """One load check in a line, for --list."""
    named = " (when named)" if check.slow else ""
    return f"{check.hosts:<8} {check.topic:<9} {check.id:<26} {check.owner:<14} {check.title}{named}"


def explain_lines(check: LoadCheck) -> Iterator[str]:
    """One load check whole."""
    limits = ((word, value) for word, value in (("error", check.error), ("warning", check.warn)))
    side = "below" if check.better == "higher" else "above"
    held = [f"{word} {side} {value:g} {check.unit}" for word, value in limits if value is not None]
    held.append(f"warning {check.spread:.0%} {side} the median of the fleet")
    yield f"{check.id}: {check.title}"
    yield from rows(
        ("hosts", check.hosts),
        ("runs", " ".join(check.command)),
        ("against", " ".join(check.listens)),
        ("for each", check.parts),
        ("reads", check.read),
        ("expects", ", ".join(held)),
        ("lasts", f"at most {check.within_s} s each time"),
        ("why", check.why),
        ("owner", check.owner),
        ("do", check.remedy),
        ("install", check.install),
        ("source", check.known_from),
        ("check", check.source),
    )


def compared_lines(compared: Compared) -> Iterator[str]:
    """One check of two runs: its median then and now, and what moved, worst first."""
    before, after = compared.before, compared.after
    yield f"{after.title}: median {_number(before.usual)} → {_number(after.usual)} {after.unit}"
    moved = sorted(compared.moved, key=lambda m: (m.word != "worse", _share(m)))
    for one in moved[:SHOWN]:
        yield f"  {one.word:<7} {where_of(one.ends)}: {_number(one.before)} → {_number(one.after)}"
    if len(moved) > SHOWN:
        yield f"  and {len(moved) - SHOWN} more"
    if compared.gone or compared.new:
        yield f"  only before: {compared.gone}, only after: {compared.new}"


def _share(moved: Moved) -> float:
    """How far it moved, what failed first."""
    if not moved.before or moved.after is None:
        return -1e9
    return -abs(moved.after / moved.before - 1)


def _number(value: float | None) -> str:
    return "failed" if value is None else f"{value:.4g}"
