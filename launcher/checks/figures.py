"""What programs of load checks printed → Figures; knows no threshold and no host."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from launcher.model.load_check import End, Figure, Leg, LoadCheck, Meeting

LONGEST = 80


@dataclass(frozen=True, slots=True)
class Told:
    """How one host's program of one leg ended."""

    exit: int | None
    """None: it was stopped, because its time was over."""
    text: str


def figures_of(meeting: Meeting, told: Sequence[Sequence[Told]]) -> tuple[Figure, ...]:
    """Of each leg, by what each host (in the meeting's order) told of each leg."""
    found: list[Figure] = []
    for index, leg in enumerate(meeting.legs):
        ends = [own[index] if index < len(own) else Told(None, "") for own in told]
        found += _of_leg(meeting, leg, ends)
    return tuple(merged(found, meeting.check))


def _of_leg(meeting: Meeting, leg: Leg, told: Sequence[Told]) -> Iterator[Figure]:
    check = meeting.check
    reason = "" if check.counted else _failed(meeting, told)
    text = "\n".join(t.text for place, t in enumerate(told) if place != leg.listener)
    read = {} if reason else read_text(check, text)
    if not read:
        yield Figure(check.id, leg.ends, None, reason or "it printed no figure" + _last(text))
    for part, value in read.items():
        ends = tuple(replace(end, part=part) for end in leg.ends) if part else leg.ends
        yield Figure(check.id, ends, value)


def read_text(check: LoadCheck, text: str) -> dict[str, float]:
    """Part → figure, the worst of each; empty where there is none."""
    found: dict[str, float] = {}
    if check.counted:
        ran = re.search(check.counted, text, re.MULTILINE)
        return {"": float(len(re.findall(check.read, text, re.MULTILINE)))} if ran else found
    for match in re.finditer(check.read, text, re.MULTILINE):
        groups = match.groupdict()
        of = groups.get("of")
        if "value" in groups:
            cells = [(of or "", groups["value"])]
        else:
            cells = [(of or str(n), word) for n, word in enumerate((groups["values"] or "").split())]
        for name, word in cells:
            if (value := _number(word)) is not None:
                part = f"{check.part} {name}".strip() if name else ""
                found[part] = worse(check, found.get(part, value), value)
    return found


def worse(check: LoadCheck, one: float, other: float) -> float:
    """Of two figures of one thing the worse."""
    return min(one, other) if check.better == "higher" else max(one, other)


def merged(figures: Iterable[Figure], check: LoadCheck) -> Iterator[Figure]:
    """Those of the same ends, in whichever direction, as one: a failure, or the worse figure."""
    together: dict[tuple[End, ...], Figure] = {}
    for figure in figures:
        key = tuple(sorted(figure.ends))
        first = together.setdefault(key, replace(figure, ends=key))
        if first.value is None or figure.value is None:
            together[key] = first if first.value is None else replace(figure, ends=key)
        else:
            together[key] = replace(first, value=worse(check, first.value, figure.value))
    yield from together.values()


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:  # `N/A`: a GPU copies nothing to itself
        return None


def _failed(meeting: Meeting, told: Sequence[Told]) -> str:
    """Which host's program did not end well, and its last words. Of several one that ended by itself: the
    others waited for it."""
    bad = [(host, t) for host, t in zip(meeting.hosts, told, strict=True) if t.exit != 0]
    if not bad:
        return ""
    host, first = next(((h, t) for h, t in bad if t.exit is not None), bad[0])
    how = f"no end within {meeting.check.within_s} s" if first.exit is None else f"exit {first.exit}"
    return f"{how} on {host}{_last(first.text)}"


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f": {lines[-1][:LONGEST]}" if lines else ""
