"""GuardWord: what a guard says of its instance; knows no transport."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from launcher.model.facts import Probe

most_bytes = 1 << 16


@dataclass(frozen=True, slots=True)
class End:
    """How an epoch of an instance ended: where first, and why."""

    epoch: int
    host: str
    why: str
    when_s: float
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class GuardWord:
    """What the guard of one host says."""

    epoch: int
    phase: str
    """`clean`, `run` or `stop`."""
    tries: int
    """Epochs in a row that ended before they had been ready for long."""
    gave_up: bool
    waits: str
    """What is in the way of the next start; empty while it runs."""
    silent: tuple[str, ...]
    """Hosts of the instance of which it hears nothing."""
    last: End | None


def guard_probe(instance: str) -> Probe:
    """Asks a host for its guard's word."""
    return Probe("read", (f"/run/dsv32/guard-{instance}.json", most_bytes))


def guard_word(answer: Any) -> GuardWord | None:
    """The answer to `guard_probe`; None where there is no guard, or its host did not answer."""
    try:
        told = json.loads(answer["text"])
        ends = [End(e["epoch"], e["host"], e["why"], e["when"]) for e in told["ends"]]
        return GuardWord(
            epoch=told["epoch"],
            phase=told["phase"],
            tries=told["tries"],
            gave_up=told["gave_up"],
            waits=told["waits"],
            silent=tuple(told["silent"]),
            last=ends[-1] if ends else None,
        )
    except (TypeError, KeyError, ValueError):
        return None


def last_end(words: Iterable[GuardWord | None]) -> End | None:
    """The newest end that any guard of the instance tells of."""
    ends = [word.last for word in words if word and word.last]
    return max(ends, key=lambda end: end.when_s, default=None)
