"""Severity, Finding: the verdict on something looked at; knows not how it was asked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from launcher.model.problem import Problem


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
