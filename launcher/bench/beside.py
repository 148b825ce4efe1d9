"""Published rows, and a model, beside what was measured: figures of both, and conditions that differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from launcher.bench.figures import FIGURES, spread
from launcher.model.bench import Measured, Point
from launcher.model.measurement import Measurement
from launcher.model.reference import Reference

NEAR = 0.10
"""Lengths and loads that differ by no more are the same condition."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A figure of a published row or of a model, and ours; None: we have not measured it."""

    figure: str
    theirs: float
    ours: float | None

    @property
    def difference(self) -> float | None:
        """Ours beyond theirs, as a share of theirs."""
        return None if self.ours is None else self.ours / self.theirs - 1


@dataclass(frozen=True, slots=True)
class Beside:
    """A published row, and the point of ours that is nearest to it."""

    name: str
    row: Reference
    point: Point
    pairs: tuple[Pair, ...]
    other: tuple[str, ...]
    """Conditions that differ, or that its source does not tell; none: it may be held against ours."""


@dataclass(frozen=True, slots=True)
class Foretold:
    """What a model says of our points."""

    figures: Mapping[Point, Mapping[str, float]] = field(default_factory=dict)
    """Point → figure, by the words of `Figure` → its value."""
    other: tuple[str, ...] = ()
    """Conditions that the model was made for, and that ours are not."""
    off: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Figure → from where to where it was off on published points, as shares of these."""
    nothing: str = ""
    """Why it has no figures."""


def foretold_pairs(measurement: Measurement, made: Foretold) -> Iterator[tuple[Point, Pair]]:
    """Each figure that the model has of a point, and ours."""
    for measured in measurement.points:
        known = {str(f): spread(measured.results, measurement, f) for f in FIGURES}
        for figure, value in made.figures.get(measured.point, {}).items():
            own = known.get(figure)
            yield measured.point, Pair(figure, value, own.middle if own else None)


def beside(measurement: Measurement, rows: Mapping[str, Reference]) -> tuple[Beside, ...]:
    """Each row beside our nearest point, those of the same conditions first."""
    found = [_nearest(name, row, measurement) for name, row in rows.items() if measurement.points]
    return tuple(sorted(found, key=lambda b: (len(b.other), b.name)))


def _nearest(name: str, row: Reference, measurement: Measurement) -> Beside:
    with_other = [(m, tuple(_other(row, m.point, measurement))) for m in measurement.points]
    measured, other = min(with_other, key=lambda pair: (len(pair[1]), _apart(row, pair[0].point)))
    return Beside(name, row, measured.point, tuple(_pairs(row, measured, measurement)), other)


def _apart(row: Reference, point: Point) -> float:
    return abs((point.concurrency or 0) - row.concurrency)


def _pairs(row: Reference, measured: Measured, measurement: Measurement) -> Iterator[Pair]:
    known = {str(f): spread(measured.results, measurement, f) for f in FIGURES}
    for figure, published in row.figures.items():
        own = known.get(figure)
        yield Pair(figure, published, own.middle if own else None)


def _other(row: Reference, point: Point, measurement: Measurement) -> Iterator[str]:
    ours, load = measurement.topology, measurement.workload
    engine = measurement.versions.get("engine", "")
    for what, theirs, own in (
        ("model", row.model, measurement.model),
        ("hardware", row.hardware, measurement.hardware),
        *((pool, row.pools.get(pool, ""), ours.get(pool, "")) for pool in ("prefill", "decode")),
    ):
        if theirs != own and (row.pools or what in ("model", "hardware")):
            yield f"{what} {theirs or 'not told' if what in ('model', 'hardware') else theirs or 'none'}"
    if not row.pools:
        yield "pools not told"
    if row.engine.rpartition(" ")[2] not in engine.split() or not row.engine:
        yield f"engine {row.engine or 'not told'}"
    for what, told, own_number in (
        ("prompt tokens", row.input_tokens, load.input_tokens),
        ("answer tokens", row.output_tokens, load.output_tokens),
        ("concurrency", row.concurrency, point.concurrency or 0),
        ("requests/s", row.rate, point.rate or 0.0),
    ):
        if abs(told - own_number) > NEAR * max(told, own_number):
            yield f"{what} {f'{told:g}' if told else 'not told' if what != 'requests/s' else 'unbounded'}"
