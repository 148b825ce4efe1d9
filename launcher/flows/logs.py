"""logs: the journals of a target's units on all their hosts, filtered, merged in time order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Literal, TypeAlias, get_args

from launcher.flows.targets import Unit
from launcher.health.hands import Hands, look_within_s
from launcher.health.marks import Mark, Marks
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.problem import InputError, Problem
from launcher.wait import CLOCK, Clock, looks

FOLLOW_EVERY_S = 1.0
# what one request may bring of a unit when it is not known how many lines are kept
lines_at_most = 50_000
KERNEL = "kernel"
COLOURS = re.compile(r"\x1b\[[\d;]*m")
UNITS_OF_TIME = {"s": 1, "m": 60, "h": 3600, "d": 86400}
Priority: TypeAlias = Literal["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"]
"""As syslog and journalctl call them, the gravest first."""
PRIORITIES: tuple[Priority, ...] = get_args(Priority)
# engines and routers write to stdout, where all lines have the same priority: their own marks tell
MARKED: Mapping[Mark, Priority] = {"error": "err", "warning": "warning", "info": "info", "": "debug"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of one unit's journal."""

    time_s: float
    """Epoch seconds, by the clock of its host."""
    host: str
    owner: str
    """The instance, a word of `targets.ROUTING`, or `kernel`."""
    unit: str
    text: str
    priority: Priority
    """The journal's, or that of the program's own mark, whichever is graver."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which lines are wanted."""

    lines: int
    """The last so many of each unit."""
    since_s: float = 0.0
    """Epoch seconds; 0: from the beginning."""
    until_s: float = float("inf")
    grep: re.Pattern[str] | None = None
    priority: Priority = "debug"
    """This one and graver ones."""

    @property
    def asked(self) -> int:
        """Lines to ask a host for: where some are left out afterwards, as many as may come."""
        whole = self.grep is None and self.priority == "debug" and self.until_s == float("inf")
        return max(self.lines, 1) if whole else lines_at_most

    def keeps(self, entry: Entry) -> bool:
        """Is this line asked for?"""
        grave = PRIORITIES.index(entry.priority) <= PRIORITIES.index(self.priority)
        within = self.since_s <= entry.time_s <= self.until_s
        return within and grave and (self.grep is None or bool(self.grep.search(entry.text)))


@dataclass(frozen=True, slots=True)
class Read:
    """What one request brought: entries in time order, where to go on, and hosts that did not answer."""

    entries: tuple[Entry, ...]
    cursors: Mapping[Unit, str]
    problems: tuple[Problem, ...]


def picked(units: Iterable[Unit], name: str, *, kernel: bool) -> tuple[Unit, ...]:
    """Those with this in their name, and their hosts' kernels. InputError where no unit has it."""
    units = tuple(units)
    found = tuple(u for u in units if name in u.name)
    if not found:
        known = ", ".join(dict.fromkeys(u.name.removesuffix(".service") for u in units))
        raise InputError(Problem(f"no unit here has `{name}` in its name", "--unit", f"there are: {known}"))
    hosts = dict.fromkeys(u.host for u in found)
    return (*found, *(Unit(host, KERNEL, KERNEL) for host in hosts if kernel))


def read(
    fleet: Hands, units: Iterable[Unit], wanted: Selection, marks: Marks, cursors: Mapping[Unit, str]
) -> Read:
    """The lines of all units, one request a host; those after its cursor for a unit that has one."""
    first = f"@{wanted.since_s:.0f}" if wanted.since_s else ""
    probes = {
        u: Probe(
            "journal", (u.name, "", lines_at_most if u in cursors else wanted.asked, cursors.get(u, first))
        )
        for u in units
    }
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
        found = (entry_of(unit, line, marks) for line in journal["entries"])
        kept = [entry for entry in found if wanted.keeps(entry)]
        entries += kept if unit in cursors else kept[len(kept) - min(wanted.lines, len(kept)) :]
        # of a unit that has said nothing yet, what it says next is its first line
        after[unit] = journal["cursor"] if journal["entries"] else cursors.get(unit, "start")
    problems = tuple(a for a in answers.values() if isinstance(a, Problem))
    return Read(tuple(sorted(entries, key=lambda e: e.time_s)), after, problems)


def entry_of(unit: Unit, line: Mapping[str, object], marks: Marks) -> Entry:
    """A line as a host's journal has it."""
    text = COLOURS.sub("", str(line["message"]))
    own = PRIORITIES.index(MARKED[marks.of(text)])
    priority = PRIORITIES[min(own, int(str(line["priority"])))]
    return Entry(float(str(line["time"])), unit.host, unit.owner, unit.name, text, priority)


def follow(
    fleet: Hands, units: Iterable[Unit], wanted: Selection, marks: Marks, *, clock: Clock = CLOCK
) -> Iterator[Read]:
    """The lines there are, then new ones as they come, without end."""
    cursors: Mapping[Unit, str] = {}
    units = tuple(units)
    for _ in looks(FOLLOW_EVERY_S, clock):
        found = read(fleet, units, wanted, marks, cursors)
        yield found
        cursors = found.cursors


def moment(text: str, now_s: float, *, option: str = "--since") -> float:
    """`10m`, `2h`, `1d` before now, or an ISO date and time (UTC if it names no zone), as epoch seconds."""
    if match := re.fullmatch(r"(\d+)([smhd])", text.strip()):
        return now_s - int(match[1]) * UNITS_OF_TIME[match[2]]
    try:
        told = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        what = f"`{text}` is no time"
        raise InputError(Problem(what, option, do="write 10m, 2h, 1d or 2026-11-29T18:05")) from None
    return (told if told.tzinfo else told.replace(tzinfo=timezone.utc)).timestamp()
