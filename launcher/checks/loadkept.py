"""What load checks measured ⇄ JSON, and two of them side by side; knows no file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from launcher.model.load_check import Better, End, Figure, LoadCheck, LoadFinding
from launcher.model.problem import InputError, Problem
from launcher.model.values import Json

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Kept:
    """One check as it was measured: what is needed to hold another measurement against it."""

    check: str
    title: str
    unit: str
    better: Better
    spread: float
    figures: tuple[Figure, ...]

    @property
    def usual(self) -> float | None:
        """The median; None where all failed."""
        values = [f.value for f in self.figures if f.value is not None]
        return median(values) if values else None


@dataclass(frozen=True, slots=True)
class Moved:
    """One measurement of both that is no more what it was."""

    ends: tuple[End, ...]
    before: float | None
    after: float | None
    word: Literal["worse", "better"]


@dataclass(frozen=True, slots=True)
class Compared:
    """One check of both."""

    before: Kept
    after: Kept
    moved: tuple[Moved, ...]
    gone: int
    """Measurements that only the first has."""
    new: int


def kept(check: LoadCheck, figures: Sequence[Figure]) -> Kept:
    """What is kept of a check."""
    return Kept(check.id, check.title, check.unit, check.better, check.spread, tuple(figures))


def document(run: str, cluster: str, told: Iterable[tuple[Kept, Sequence[LoadFinding]]]) -> str:
    """Their JSON, with what was found beside it for people; that is not read back."""
    checks: list[Json] = [
        {
            "check": one.check,
            "title": one.title,
            "unit": one.unit,
            "better": one.better,
            "spread": one.spread,
            "median": one.usual,
            "figures": [
                {"ends": _plain(f.ends), "value": f.value, **({"reason": f.reason} if f.reason else {})}
                for f in one.figures
            ],
            "findings": [
                {"severity": f.severity, "verdict": f.verdict, "ends": _plain(f.ends), "what": f.what}
                for f in findings
            ],
        }
        for one, findings in told
    ]
    return json.dumps({"format": FORMAT, "run": run, "cluster": cluster, "checks": checks}, indent=1)


def read_back(text: str, where: str) -> Mapping[str, Kept]:
    """Check → what was kept of it. InputError where the text is none of ours."""
    try:
        told = json.loads(text)
        if told["format"] != FORMAT:
            raise ValueError(f"format {told['format']}")
        return {one["check"]: _kept(one) for one in told["checks"]}
    except (ValueError, KeyError, TypeError) as error:
        what, why = "this file has no measurements of `check --load`", f"read as one: {error!r}"
        raise InputError(Problem(what, where, why, "name a run that `dsv32-launch runs` lists")) from None


def compare(before: Mapping[str, Kept], after: Mapping[str, Kept]) -> tuple[Compared, ...]:
    """Each check that both have, and of each measurement whether it moved by more than the check's spread."""
    return tuple(_compared(before[name], own) for name, own in after.items() if name in before)


def _compared(before: Kept, after: Kept) -> Compared:
    first, second = ({f.ends: f.value for f in one.figures} for one in (before, after))
    both = [ends for ends in second if ends in first]
    moved = tuple(_moved(after, [(ends, first[ends], second[ends]) for ends in both]))
    return Compared(before, after, moved, len(first) - len(both), len(second) - len(both))


def _moved(
    kept: Kept, pairs: Iterable[tuple[tuple[End, ...], float | None, float | None]]
) -> Iterator[Moved]:
    for ends, before, after in pairs:
        if before is None or after is None:
            if before is not after:
                yield Moved(ends, before, after, "worse" if after is None else "better")
        elif abs(after - before) > kept.spread * abs(before):
            yield Moved(
                ends, before, after, "better" if (after > before) == (kept.better == "higher") else "worse"
            )


def _plain(ends: Iterable[End]) -> Json:
    return [[end.host, end.part] for end in ends]


def _kept(told: Mapping[str, object]) -> Kept:
    figures = told["figures"]
    if not isinstance(figures, list):
        raise TypeError("figures are no list")
    read = (
        Figure(str(told["check"]), tuple(End(*end) for end in f["ends"]), f["value"], f.get("reason", ""))
        for f in figures
    )
    better: Better = "lower" if told["better"] == "lower" else "higher"
    spread = float(str(told["spread"]))
    return Kept(str(told["check"]), str(told["title"]), str(told["unit"]), better, spread, tuple(read))
