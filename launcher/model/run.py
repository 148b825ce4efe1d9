"""Event, RunRecord: what happens during a run, as values; knows no file, no screen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

EventKind: TypeAlias = Literal[
    "run-started",
    "observed",
    "planned",
    "move-started",
    "stage-started",
    "change-started",
    "change-done",
    "change-failed",
    "job",
    "phase",
    "ready",
    "despite",
    "finding",
    "host-failed",
    "instance-failed",
    "stage-done",
    "verified",
    "measured",
    "move-done",
    "move-failed",
    "planted",
    "seen",
    "whole",
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


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One invocation that may change hosts: who, from where, with what, and how it ended."""

    id: str
    """`<utc time>-<flow>`, also the name of its folder."""
    flow: str
    cluster: str
    who: str
    where_from: str
    """The controller's name, and the address the person came from if over SSH."""
    argv: tuple[str, ...]
    versions: Mapping[str, str]
    data_digest: str
    started: str
    """UTC, ISO 8601."""
    why: str = ""
    """What it was for, if that was said."""
    ended: str = ""
    """Empty: it runs, or its controller was killed."""
    exit_code: int | None = None
