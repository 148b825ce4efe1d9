"""Figures → what is too slow and whose fault it is: a host, a part of it, a part of all, or a pair; pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from launcher.model.load_check import End, Figure, LoadCheck, LoadFinding
from launcher.model.rule import Severity

LEAST = 3
"""Figures of which a median says what is usual."""
MOST_PAIRS = 4
"""Pairs with nothing in common that are told one by one."""


@dataclass(frozen=True, slots=True)
class Culprit:
    """Whose fault some of the measurements are."""

    ends: tuple[End, ...]
    measured: tuple[int, ...]
    """Which of them, by their places."""


def findings_of(check: LoadCheck, figures: Sequence[Figure], *, judged: bool) -> tuple[LoadFinding, ...]:
    """What is wrong of one check. `judged`: held against its thresholds, and not against the fleet alone."""
    values = [f.value for f in figures if f.value is not None]
    usual = median(values) if len(values) >= LEAST else None
    grades = {n: grade(check, f.value, usual=usual, judged=judged) for n, f in enumerate(figures)}
    slow = {n: word for n, word in grades.items() if word}
    found = []
    for culprit in together(culprits([f.ends for f in figures], slow)):
        own = [figures[n] for n in culprit.measured]
        severity: Severity = "error" if "error" in {slow[n] for n in culprit.measured} else "warning"
        what = _told(check, own, usual=usual, judged=judged)
        found.append(LoadFinding(check, severity, "wrong", culprit.ends, what))
    return tuple(found)


def grade(check: LoadCheck, value: float | None, *, usual: float | None, judged: bool) -> Severity | None:
    """error, warning, or None where it is good."""
    if value is None or (judged and _beyond(check, value, check.error)):
        return "error"
    if judged and _beyond(check, value, check.warn):
        return "warning"
    share = 1 - check.spread if check.better == "higher" else 1 + check.spread
    return "warning" if usual is not None and _beyond(check, value, usual * share) else None


def _beyond(check: LoadCheck, value: float, limit: float | None) -> bool:
    if limit is None:
        return False
    return value < limit if check.better == "higher" else value > limit


def culprits(measured: Sequence[tuple[End, ...]], slow: Collection[int]) -> tuple[Culprit, ...]:
    """The fewest that explain all that is slow: who is named has no good figure, and its peers have.

    In this order: everything; a host; a part on all hosts, as one switch of a fabric is; a part of one host;
    and what is then left, pair by pair. What is explained by one is no more held against its peers.
    """
    left = set(slow)
    hosts = {end.host for ends in measured for end in ends}
    if left and len(left) == len(measured) and (len(measured) > 1 or len(hosts) > 1):
        return (Culprit(tuple(End(host) for host in sorted(hosts)), tuple(sorted(left))),)
    found: list[Culprit] = []
    for suspects in (_hosts(measured), _parts(measured), _ends(measured)):
        named = [
            Culprit((end,), tuple(sorted(set(places) & left)))
            for end, places in suspects.items()
            if set(places) <= set(slow) and set(places) & left and _told_apart(end, places, measured)
        ]
        found += named
        left -= {place for culprit in named for place in culprit.measured}
    return (*found, *(Culprit(measured[place], (place,)) for place in sorted(left)))


def together(found: Sequence[Culprit]) -> tuple[Culprit, ...]:
    """The same, many pairs with nothing in common as one: a fabric that is bad here and there."""
    pairs = [c for c in found if len(c.ends) > 1 and len(c.measured) == 1]
    if len(pairs) <= MOST_PAIRS:
        return tuple(found)
    hosts = sorted({end.host for pair in pairs for end in pair.ends})
    measured = tuple(sorted(place for pair in pairs for place in pair.measured))
    others = (culprit for culprit in found if culprit not in pairs)
    return (*others, Culprit(tuple(End(host) for host in hosts), measured))


def _told_apart(end: End, places: Sequence[int], measured: Sequence[tuple[End, ...]]) -> bool:
    """Is there more than one peer that it was slow with? With one alone it may be that one's fault."""
    if not end.host:
        return len(places) > 1
    peers = {other.host for place in places for other in measured[place]} - {end.host}
    return len(peers) != 1


def _hosts(measured: Sequence[tuple[End, ...]]) -> Mapping[End, list[int]]:
    return _by(measured, lambda end: End(end.host))


def _parts(measured: Sequence[tuple[End, ...]]) -> Mapping[End, list[int]]:
    found = _by(measured, lambda end: End("", end.part))
    return {end: places for end, places in found.items() if end.part}


def _ends(measured: Sequence[tuple[End, ...]]) -> Mapping[End, list[int]]:
    found = _by(measured, lambda end: end)
    return {end: places for end, places in found.items() if end.part}


def _by(measured: Sequence[tuple[End, ...]], key: Callable[[End], End]) -> Mapping[End, list[int]]:
    """Suspect → the places of all measurements that it had a part in."""
    found: dict[End, list[int]] = {}
    for place, ends in enumerate(measured):
        for suspect in sorted({key(end) for end in ends}):
            found.setdefault(suspect, []).append(place)
    return found


def _told(check: LoadCheck, figures: Sequence[Figure], *, usual: float | None, judged: bool) -> str:
    """`212–214 Gb/s in 3 measurements, expected at least 360; median of the fleet 391`."""
    values = sorted(f.value for f in figures if f.value is not None)
    failed = [f for f in figures if f.value is None]
    words = []
    if values:
        ends = dict.fromkeys(f"{value:.4g}" for value in (values[0], values[-1]))
        times = f" in {len(values)} measurements" if len(values) > 1 else ""
        words.append(f"{'–'.join(ends)} {check.unit}{times}{_expected(check, judged=judged)}")
    if failed:
        words.append(f"{len(failed)} failed: {failed[0].reason}" if len(figures) > 1 else failed[0].reason)
    if usual is not None:
        words.append(f"median of the fleet {usual:.4g}")
    return "; ".join(words)


def _expected(check: LoadCheck, *, judged: bool) -> str:
    limit = check.warn if check.warn is not None else check.error
    if not judged or limit is None:
        return ""
    return f", expected at {'least' if check.better == 'higher' else 'most'} {limit:g}"
