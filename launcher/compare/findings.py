"""What rules say before and after: new, gone, still there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from launcher.model.finding import RuleFinding


@dataclass(frozen=True, slots=True)
class Findings:
    """Claims that nobody has accepted, by rule."""

    new: tuple[RuleFinding, ...] = ()
    gone: tuple[RuleFinding, ...] = ()
    still: tuple[RuleFinding, ...] = ()
    """As they are afterwards."""


def compared(before: Iterable[RuleFinding], after: Iterable[RuleFinding]) -> Findings:
    """The same rule is the same finding, whatever numbers it names."""
    old, new = ([f for f in side if f.counts] for side in (before, after))
    known, found = {f.rule for f in old}, {f.rule for f in new}
    return Findings(
        new=tuple(f for f in new if f.rule not in known),
        gone=tuple(f for f in old if f.rule not in found),
        still=tuple(f for f in new if f.rule in known),
    )
