"""Drills as text: a row of the list, an outcome, the table of all; knows no terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from launcher.cli.words import columns

if TYPE_CHECKING:
    from launcher.flows.drill_run import Outcome
    from launcher.model.drill import Drill

HEADS = (
    *("drill", "noticed s", "said s", "whole s", "ok", "failed", "of these in flight"),
    *("hung", "wrong", "verdict"),
)


def drill_row(drill: Drill) -> str:
    """One line of the list."""
    ends = f"runbook {drill.runbook}" if drill.runbook else "by itself"
    return f"{drill.id:<24} {drill.spot:<8} {ends:<28} {drill.title}"


def outcome_document(outcome: Outcome) -> dict[str, Any]:
    """An outcome for programs."""
    return {
        "drill": outcome.case.drill.id,
        "instance": outcome.case.instance,
        "host": outcome.case.host,
        "noticed_s": outcome.noticed_s,
        "seen_s": outcome.seen_s,
        "whole_s": outcome.whole_s,
        "safe": outcome.planted.safe,
        "requests": asdict(outcome.count),
        "problems": list(outcome.problems),
        "passed": outcome.passed,
    }


def outcome_line(outcome: Outcome) -> str:
    """How it went, in a line; what was not as it must be, in one each."""
    c = outcome.count
    failed = c.in_flight + c.outage + c.after
    lines = [
        f"{'PASS' if outcome.passed else 'FAIL'}  {outcome.case.title}: noticed {_s(outcome.noticed_s)}, "
        f"said {_s(outcome.seen_s)}, whole {_s(outcome.whole_s)}; {c.ok} ok, {failed} failed "
        f"({c.in_flight} of the {c.open} in flight), {c.hung} hung, {c.wrong} wrong, "
        f"{f'{c.other} not to be judged, ' if c.other else ''}"
        f"slowest good answer {c.slowest_s:.1f} s"
    ]
    return "\n".join([*lines, *(f"      {text}" for text in outcome.problems)])


def table(outcomes: Sequence[Outcome]) -> str:
    """All of them."""
    rows = [HEADS, *(_row(o) for o in outcomes)]
    passed = sum(o.passed for o in outcomes)
    return f"\n{columns(rows, left=('drill', 'verdict'))}\n{passed} of {len(outcomes)} passed"


def _row(outcome: Outcome) -> tuple[str, ...]:
    c = outcome.count
    times = (_number(outcome.noticed_s), _number(outcome.seen_s), _number(outcome.whole_s))
    counts = (c.ok, c.in_flight + c.outage + c.after, c.in_flight, c.hung, c.wrong)
    return (outcome.case.title, *times, *map(str, counts), "PASS" if outcome.passed else "FAIL")


def _number(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f}"


def _s(seconds: float | None) -> str:
    return "-" if seconds is None else f"after {seconds:.1f} s"
