"""Line, first_error: which log line of a dead instance says why; knows no process and no host's state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launcher.model.profile import Engine

# a unit's journal also holds what systemd says about it
systemd_pid = 1


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a unit's journal."""

    time_s: float
    """Seconds since the epoch, by the clock of the host that wrote it."""
    text: str


@dataclass(frozen=True, slots=True)
class FirstError:
    """The line that names a failure first, from where the failure's own words begin."""

    host: str
    time_s: float
    text: str


def first_error(logs: Mapping[str, Iterable[Line]], engine: Engine) -> FirstError | None:
    """The earliest line over all hosts that a `fatal` pattern finds and no `ignore` pattern does.

    What failed first made the others fail; the last lines of a log are mostly the way out of a traceback.
    """
    fatal = alternatives(engine.fatal)
    ignore = alternatives(engine.ignore)
    found = (
        FirstError(host, line.time_s, line.text[match.start() :].strip())
        for host, lines in logs.items()
        for line in lines
        if (match := fatal.search(line.text)) and not ignore.search(line.text)
    )
    return min(found, key=lambda e: e.time_s, default=None)


def alternatives(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern that matches where any of these does; nothing, if there are none."""
    return re.compile("|".join(f"(?:{p})" for p in patterns) if patterns else r"(?!)")


def last_start(entries: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The entries since the unit's last start: systemd forgets the invocation of a unit that ended well."""
    starts = [n for n, e in enumerate(entries) if told_by_systemd(e, "Starting ")]
    return entries[starts[-1] :] if starts else entries


def told_by_systemd(entry: Mapping[str, Any], words: str) -> bool:
    """Is this systemd's own line about the unit, with these words first?"""
    return entry["pid"] == systemd_pid and str(entry["message"]).startswith(words)
