"""Events of a trace → where the time went, nested ones counted once; knows neither files nor hosts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby

from launcher.model.trace import Capture, Names, RankTime, TraceEvent

OTHER = "other"
TOP = 10


def time_of(label: str, events: Iterable[TraceEvent], capture: Capture) -> RankTime:
    """What a process did, by family, and between what it did. A GPU's work, where the trace has any."""
    all_events = sorted(events, key=lambda e: (e.lane, e.begun_us, -e.lasted_us))
    on_gpu = any(e.category in capture.gpu for e in all_events)
    work = frozenset(capture.gpu if on_gpu else capture.cpu)
    done = [e for e in all_events if e.category in work]
    window = _span(all_events)
    families: dict[str, float] = {}
    ops: dict[str, list[float]] = {}
    for event, family, self_us in self_times(all_events, work, namer(capture.families)):
        families[family] = families.get(family, 0.0) + self_us / 1000
        ops.setdefault(event.name, []).append(self_us / 1000)
    top = sorted(((n, sum(t), len(t)) for n, t in ops.items()), key=lambda o: -o[1])[:TOP]
    return RankTime(
        label,
        "GPU" if on_gpu else "CPU",
        window_ms=window / 1000,
        idle_ms=(window - covered_us(done)) / 1000,
        families_ms=families,
        scopes_ms={name: scope_us(all_events, names) / 1000 for name, names in capture.scopes.items()},
        top=tuple(top),
    )


def self_times(
    events: Sequence[TraceEvent], work: frozenset[str], family_of: Callable[[str], str]
) -> Iterator[tuple[TraceEvent, str, float]]:
    """Each event that is work, its family and the time that no work within it takes.

    `events` are sorted by lane and begin, the outer before the inner. What a name does not tell of an event,
    what is around it does.
    """
    for _, lane in groupby(events, key=lambda e: e.lane):
        around: list[tuple[TraceEvent, str, list[float]]] = []
        done: list[tuple[TraceEvent, str, list[float]]] = []
        for event in lane:
            while around and around[-1][0].ended_us <= event.begun_us:
                around.pop()
            family = family_of(event.name) or (around[-1][1] if around else "")
            here = (event, family, [event.lasted_us])
            if event.category in work:
                outer = next((a for a in reversed(around) if a[0].category in work), None)
                if outer:
                    outer[2][0] -= min(event.lasted_us, outer[0].ended_us - event.begun_us)
                done.append(here)
            around.append(here)
        yield from ((event, family or OTHER, max(left[0], 0.0)) for event, family, left in done)


def scope_us(events: Sequence[TraceEvent], names: Names) -> float:
    """The time of all events of these names, of those in each other the outermost."""
    found = re.compile("|".join(names.patterns), re.IGNORECASE)
    wanted = [e for e in events if found.search(e.name)]
    return sum(covered_us(list(lane)) for _, lane in groupby(wanted, key=lambda e: e.lane))


def covered_us(events: Sequence[TraceEvent]) -> float:
    """The time in which at least one of them goes on."""
    total, until = 0.0, float("-inf")
    for event in sorted(events, key=lambda e: e.begun_us):
        total += max(0.0, event.ended_us - max(event.begun_us, until))
        until = max(until, event.ended_us)
    return total


def namer(families: Mapping[str, Names]) -> Callable[[str], str]:
    """Name → its family, the first that fits; empty: none does."""
    known = [(n, re.compile("|".join(f.patterns), re.IGNORECASE)) for n, f in families.items()]

    @cache
    def family_of(name: str) -> str:
        return next((family for family, pattern in known if pattern.search(name)), "")

    return family_of


def _span(events: Sequence[TraceEvent]) -> float:
    if not events:
        return 0.0
    return max(e.ended_us for e in events) - min(e.begun_us for e in events)
