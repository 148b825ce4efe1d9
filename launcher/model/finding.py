"""Severity, Finding, RuleFinding: the verdict on something looked at; knows not how it was asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, TypeAlias

from launcher.model.problem import Problem
from launcher.model.rule import Severity as RuleSeverity

State: TypeAlias = Literal["fires", "depends", "open", "accepted"]
"""fires: it is so; depends: it is so, in some releases, or unless more is given than a file shows; open: it
cannot be told; accepted: it is so, and the inventory says why that is meant."""


class Severity(IntEnum):
    """How bad; `ok` findings are kept so that a report can say what was looked at."""

    OK = 0
    INFO = 1
    WARNING = 2
    ERROR = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """One subject, looked at: its state, and the Problem if there is one."""

    severity: Severity
    subject: str
    text: str
    problem: Problem | None = None


def failures(problems: Iterable[Problem]) -> Iterator[Finding]:
    """An error each, on what the Problem is about."""
    return (Finding(Severity.ERROR, problem.where, problem.what, problem) for problem in problems)


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """What one rule says of one or more launches, in the same words for all of them."""

    rule: str
    state: State
    severity: RuleSeverity
    launches: tuple[str, ...]
    places: tuple[str, ...]
    """`file:line` of the settings that it is about; of the launches where it is about something absent."""
    what: str
    why: str
    fix: str
    known_from: str
    since: str = ""
    until: str = ""
    """The releases it holds for, as in the rule."""
    because: str = ""
    """depends, open: what is not known; accepted: the reason given."""

    @property
    def counts(self) -> bool:
        """Is it a claim that nobody has accepted?"""
        return self.state == "fires" and self.severity != "note"
