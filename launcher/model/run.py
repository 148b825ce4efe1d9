"""Event, RunRecord: what happens during a run, as values; knows no file, no screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

EventKind: TypeAlias = Literal[
    "run-started",
    "observed",
    "planned",
    "stage-started",
    "change-started",
    "change-done",
    "change-failed",
    "job",
    "phase",
    "ready",
    "finding",
    "host-failed",
    "instance-failed",
    "stage-done",
    "verified",
    "run-ended",
]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. The journal writes it as a JSON line, the view shows it."""

    kind: EventKind
    text: str = ""
    host: str = ""
    subject: str = ""
    """Step id, instance or stage."""
    data: Mapping[str, Any] = field(default_factory=dict)


Listener: TypeAlias = Callable[[Event], None]
