"""Action, Op, Draft, Change, Plan: the differences and the ops that remove them; knows not how ops run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from enum import Enum
from typing import Any

from launcher.model.hold import Hold
from launcher.model.problem import Problem
from launcher.model.revision import Entry
from launcher.model.role import STAGES, Stage
from launcher.model.rollout import Rollout


class Action(Enum):
    """What a change does; the value is its mark in a printed plan."""

    CREATE = "+"
    UPDATE = "~"
    REMOVE = "-"
    START = "▶"
    RESTART = "↻"
    STOP = "■"
    COMMAND = "!"
    REBOOT = "⟳"


@dataclass(frozen=True, slots=True)
class Op:
    """One mutating verb of the agent. `content` travels once per host, by its sha256."""

    verb: str
    args: Mapping[str, Any] = field(default_factory=dict)
    content: bytes | None = None
    secret: bool = False
    """The content is never shown, diffed or journaled."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A kind's answer: one difference, not yet bound to a step and a host."""

    action: Action
    subject: str
    before: str
    after: str
    ops: tuple[Op, ...]
    because: str = ""
    """Why, when it is more than the difference itself."""
    diff: str = ""
    """Unified diff of a text, empty for secrets and binaries."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between a host and the wish, and the ops that remove it, verbatim."""

    host: str
    stage: Stage
    step: str
    action: Action
    subject: str
    before: str
    after: str
    because: str
    """`file:line` of the step, and the reason if the difference alone does not say it."""
    ops: tuple[Op, ...]
    instance: str = ""
    """Set on START, RESTART and STOP of an engine unit: done with all processes of the instance at once."""
    diff: str = ""
    forced: bool = False
    """The command asks for it although nothing differs: a restart."""

    def key(self) -> tuple[str, str, str, str]:
        """What makes two changes the same one, whatever the facts behind them."""
        return (self.host, self.step, self.action.name, self.after)


@dataclass(frozen=True, slots=True)
class Plan:
    """All changes, in the order in which they would be applied, and digests of what they rest on."""

    changes: tuple[Change, ...]
    facts: Mapping[str, str]
    """Host → digest of its answers, but for what moves by itself (process ids, times)."""
    data_digest: str
    unreached: Mapping[str, Problem] = field(default_factory=dict)
    """Host → what kept it from being observed; nothing is planned there."""
    holds: tuple[Hold, ...] = ()
    """Who keeps hosts from other people's runs; no part of the digest."""
    remembered: Mapping[str, Entry | None] = field(default_factory=dict)
    """Host → the last run that it remembers; no part of the digest."""
    rollout: Rollout = field(default_factory=Rollout)
    """The order in which the changes are made, and who serves meanwhile."""

    def __bool__(self) -> bool:
        return bool(self.changes)

    def stage(self, stage: Stage) -> tuple[Change, ...]:
        """The changes of one stage."""
        return tuple(c for c in self.changes if c.stage == stage)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages that have changes, in order."""
        return tuple(s for s in STAGES if any(c.stage == s for c in self.changes))

    @property
    def digest(self) -> str:
        """Names this plan: changes, the order in which they are made, facts and data."""
        facts = json.dumps(dict(self.facts), sort_keys=True)
        moves = (json.dumps(astuple(move)) for move in self.rollout.moves)
        parts = [facts, self.data_digest, *(json.dumps(c.key()) for c in self.changes), *moves]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
