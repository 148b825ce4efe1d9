"""logs: the journals of a target's units on all their hosts, merged in time order."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from launcher.flows.targets import Unit
from launcher.health.hands import Hands, look_within_s
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.problem import InputError, Problem

follow_every_s = 1.0
# what one request may bring when a time is asked for instead of a number of lines
lines_at_most = 50_000
COLOURS = re.compile(r"\x1b\[[\d;]*m")
UNITS_OF_TIME = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of one unit's journal."""

    time_s: float
    """Epoch seconds, by the clock of its host."""
    host: str
    owner: str
    """The instance, `router` or `front`."""
    unit: str
    text: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Which lines are wanted."""

    lines: int
    """The last so many of each unit."""
    since_s: float = 0.0
    """Epoch seconds; 0: by number of lines only."""
    grep: re.Pattern[str] | None = None

    def keeps(self, entry: Entry) -> bool:
        """Is this line asked for?"""
        return entry.time_s >= self.since_s and (self.grep is None or bool(self.grep.search(entry.text)))


@dataclass(frozen=True, slots=True)
class Read:
    """What one request brought: entries in time order, where to go on, and hosts that did not answer."""

    entries: tuple[Entry, ...]
    cursors: Mapping[Unit, str]
    problems: tuple[Problem, ...]


def read(fleet: Hands, units: Iterable[Unit], wanted: Selection, cursors: Mapping[Unit, str]) -> Read:
    """The lines of all units, one request a host; those after its cursor for a unit that has one."""
    lines = lines_at_most if wanted.since_s else wanted.lines
    probes = {u: Probe("journal", (u.name, "", lines, cursors.get(u, ""))) for u in units}
    asked: dict[str, list[Probe]] = {}
    for unit, probe in probes.items():
        asked.setdefault(unit.host, []).append(probe)
    answers = fleet.ask(asked, within_s=look_within_s)
    entries: list[Entry] = []
    after = dict(cursors)
    for unit, probe in probes.items():
        answer = answers[unit.host]
        journal = answer[probe] if isinstance(answer, Facts) else None
        if journal is None or isinstance(journal, Unknown):
            continue
        after[unit] = journal["cursor"] or after.get(unit, "")
        told = (
            Entry(e["time"], unit.host, unit.owner, unit.name, COLOURS.sub("", e["message"]))
            for e in journal["entries"]
        )
        entries += (e for e in told if wanted.keeps(e))
    problems = tuple(a for a in answers.values() if isinstance(a, Problem))
    return Read(tuple(sorted(entries, key=lambda e: e.time_s)), after, problems)


def follow(fleet: Hands, units: Iterable[Unit], wanted: Selection) -> Iterator[Read]:
    """The lines there are, then new ones as they come, without end."""
    cursors: Mapping[Unit, str] = {}
    units = tuple(units)
    while True:
        found = read(fleet, units, wanted, cursors)
        yield found
        cursors = found.cursors
        time.sleep(follow_every_s)


def moment(text: str, now_s: float) -> float:
    """`10m`, `2h`, `1d` before now, or an ISO date and time (UTC if it names no zone), as epoch seconds."""
    if match := re.fullmatch(r"(\d+)([smhd])", text.strip()):
        return now_s - int(match[1]) * UNITS_OF_TIME[match[2]]
    try:
        told = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        what = f"`{text}` is no time"
        raise InputError(Problem(what, "--since", do="write 10m, 2h, 1d or 2026-11-29T18:05")) from None
    return (told if told.tzinfo else told.replace(tzinfo=timezone.utc)).timestamp()
