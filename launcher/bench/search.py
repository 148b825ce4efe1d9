"""The highest load that holds: which value to measure next, by what was measured; knows no load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from launcher.model.bench import Axis, Method, Verdict


@dataclass(frozen=True, slots=True)
class Tried:
    """A value that was measured, and what came of it."""

    value: float
    verdict: Verdict
    confirms: bool = False
    """By the longer run."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Measure this one next."""

    value: float
    confirms: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of a search."""

    highest: float | None
    """The highest value that held below every one that did not; None: none did."""
    confirmed: bool
    """The longer run held, too."""
    next_up: Tried | None
    """The lowest value that did not hold; None: no limit was met."""


def decide(tried: Sequence[Tried], axis: Axis, *, start: float, method: Method) -> Ask | Answer:
    """Doubling from `start` up, or halving down, until one value holds and one does not; bisection between
    them; then the longer run. What holds above one that does not is noise, and where the longer run does not
    hold, the shorter ones are not trusted any more: from then on all are long.
    """
    answer = so_far(tried)
    held, failed = answer.highest, answer.next_up
    left = method.search_points - len(tried)
    near = held is not None and _near(held, failed, axis, method)
    if left <= 0 or (near and answer.confirmed):
        return answer
    if held is not None and not answer.confirmed and (near or left == 1):
        return Ask(held, confirms=True)
    value = _between(held, failed, axis, start, start / method.search_down)
    return Ask(value, confirms=any(t.confirms for t in tried)) if value is not None else answer


def so_far(tried: Sequence[Tried]) -> Answer:
    """What is known without measuring more."""
    failed = min((t for t in tried if t.verdict != "PASS"), key=lambda t: t.value, default=None)
    below = [t for t in tried if t.verdict == "PASS" and (failed is None or t.value < failed.value)]
    held = max((t.value for t in below), default=None)
    return Answer(held, any(t.value == held and t.confirms for t in below), failed)


def _near(held: float, failed: Tried | None, axis: Axis, method: Method) -> bool:
    """No value between the two is worth a run."""
    if failed is None:
        return False
    gap = failed.value - held
    return gap <= method.search_within * held or (axis == "concurrency" and gap <= 1)


def _between(
    held: float | None, failed: Tried | None, axis: Axis, start: float, lowest: float
) -> float | None:
    whole = axis == "concurrency"
    if failed is None:
        return start if held is None else held * 2
    if held is None:
        lower = failed.value // 2 if whole else failed.value / 2
        return lower if lower >= (1 if whole else lowest) else None
    middle = (held + failed.value) / 2
    return middle // 1 if whole else middle
