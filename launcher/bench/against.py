"""Two measurements side by side: what else differs, each figure, and is it worse; knows no file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from launcher.bench.figures import FIGURES, Apart, Figure, Spread, spread
from launcher.bench.told import share_text
from launcher.model.bench import Gate, Measured, Point, Verdict
from launcher.model.measurement import Measurement
from launcher.model.problem import Problem

HIDDEN = "{0.worse_by:.1%} worse, and runs differ by {0.noise:.1%} among themselves"
ADDRESS = re.compile(r"\b\d{1,3}(\.\d{1,3}){3}\b")


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not the same on the two sides."""

    of: str
    """`topology`, `workload`, `version` or `setting`."""
    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Change:
    """A figure at a point, on both sides."""

    point: Point
    figure: Figure
    before: Spread
    after: Spread

    @property
    def apart(self) -> Apart:
        """How far the two sides are apart."""
        return Apart(self.figure.name, self.before, self.after)


@dataclass(frozen=True, slots=True)
class Judged:
    """A change of a figure that the gate looks at."""

    change: Change
    allowed: float
    """Share that is not yet worse, noise apart."""
    verdict: Verdict
    why: str = ""

    def __str__(self) -> str:
        """`concurrency 2: ttft_ms mean 49.62 → 151.10, 204.5 % worse, allowed 10 % and noise 4.0 %`."""
        change = self.change
        told = f"{change.point}: {change.figure} {change.before.middle:.2f} → {change.after.middle:.2f}"
        if self.why:
            return f"{told}: {self.why}"
        worse, noise = share_text(change.apart.worse_by), share_text(change.apart.noise)
        return f"{told}, {worse} worse, allowed {self.allowed:.0%} and noise {noise}"


def differences(before: Measurement, after: Measurement) -> tuple[Difference, ...]:
    """What differs between the two, but for the figures."""
    return tuple(
        Difference(of, what, was.get(what, "–"), now.get(what, "–"))
        for of, was, now in (
            ("topology", before.topology, after.topology),
            ("workload", _load(before), _load(after)),
            ("version", before.versions, after.versions),
            ("setting", _settings(before), _settings(after)),
        )
        for what in dict.fromkeys((*was, *now))
        if was.get(what) != now.get(what)
    )


def changes(before: Measurement, after: Measurement) -> tuple[Change, ...]:
    """Each figure that both have, at each point that both have measured."""
    return tuple(
        Change(point, what, was, now)
        for point, old, new in _both(before, after)
        for what in FIGURES
        if (was := spread(old.results, before, what)) and (now := spread(new.results, after, what))
    )


def gate(before: Measurement, after: Measurement, allowed: Gate) -> tuple[Judged, ...]:
    """Each figure that counts, at each point of `before`: FAIL where `after` is worse, or requests failed and
    none did before: figures of those that were answered tell nothing against that."""
    doubtful = {old.point: (*old.doubts, *new.doubts) for _, old, new in _both(before, after)}
    lost = {old.point: _lost(old, new) for _, old, new in _both(before, after)}
    return tuple(
        _judged(change, allowed.worse_by[change.figure.name], lost[change.point], doubtful[change.point])
        for change in changes(before, after)
        if change.figure.of == "mean" and change.figure.name in allowed.worse_by
    )


def incomparable(before: Measurement, after: Measurement) -> tuple[Problem, ...]:
    """Why a gate cannot hold one against the other: another topology or load, a point that is missing."""
    differing = [d for d in differences(before, after) if d.of in ("topology", "workload")]
    missing = [str(m.point) for m in before.points if m.point not in {n.point for n in after.points}]
    problems = [
        Problem(
            f"{d.of} differs from the baseline's: {d.what} is {d.after}, expected {d.before}",
            after.run,
            f"{before.run} was measured with the other",
            "measure the same load on the same topology, or keep another baseline: --store",
        )
        for d in differing
    ]
    if missing:
        what = f"{len(missing)} points of the baseline were not measured: {'; '.join(missing)}"
        problems.append(Problem(what, after.run, do="dsv32-launch bench, with the baseline's options"))
    return tuple(problems)


def _lost(before: Measured, after: Measured) -> str:
    """Requests that failed where none did before, in words; empty: none."""
    failed = [sum(r.asked - r.completed for r in one.results) for one in (before, after)]
    asked = sum(r.asked for r in after.results)
    return f"{failed[1]} of {asked} requests failed, and none before" if failed[1] and not failed[0] else ""


def _judged(change: Change, allowed: float, lost: str, doubts: Sequence[str]) -> Judged:
    if lost:
        return Judged(change, allowed, "FAIL", lost)
    if doubts:
        return Judged(change, allowed, "CANNOT TELL", doubts[0])
    if change.apart.noise is None:
        return Judged(change, allowed, "CANNOT TELL", "one run a side: how far runs differ is not known")
    if change.apart.word(allowed) == "worse":
        return Judged(change, allowed, "FAIL")
    if change.apart.worse_by > allowed:
        return Judged(change, allowed, "CANNOT TELL", HIDDEN.format(change.apart))
    return Judged(change, allowed, "PASS")


def _both(before: Measurement, after: Measurement) -> Iterator[tuple[Point, Measured, Measured]]:
    there = {m.point: m for m in after.points}
    for measured in before.points:
        if measured.point in there:
            yield measured.point, measured, there[measured.point]


def _load(one: Measurement) -> Mapping[str, str]:
    load = one.workload
    sizes = {"prompt tokens": str(load.input_tokens), "answer tokens": str(load.output_tokens)}
    return {"name": load.name, "target": one.target, **sizes, **load.settings}


def _settings(one: Measurement) -> Mapping[str, str]:
    """Flags of each pool's first process and of the routers; addresses are of no account."""
    told: dict[str, str] = {}
    for served in reversed(one.instances):
        told |= {f"{served.pool} {k}": v for k, v in _flags(served.seats[0].command).items()}
    return told | {f"router {k}": v for k, v in _flags(one.router_command).items()}


def _flags(words: Sequence[str]) -> Mapping[str, str]:
    found: dict[str, list[str]] = {}
    flag = ""
    for word in words:
        if word.startswith("--"):
            flag = word
            found.setdefault(flag, [])
        elif flag:
            found[flag].append(word)
    return {flag: " ".join(values) for flag, values in found.items() if not ADDRESS.search(" ".join(values))}
