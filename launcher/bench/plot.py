"""Series of points → a plot with everything in its place, in pixels; knows no drawing and no benchmark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 400, 250
LEFT, RIGHT, TOP, BOTTOM = 64, 26, 14, 44
ABOUT_TICKS = 5


@dataclass(frozen=True, slots=True)
class Value:
    """A point of a series; `low` and `high` are the runs' own, `y` one between them."""

    x: float
    y: float
    low: float
    high: float
    text: str
    """What it is, for whoever points at it."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points that belong together."""

    label: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Dot:
    """A value in its place."""

    x: float
    y: float
    low: float
    high: float
    text: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A number of an axis in its place."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A series in its place."""

    label: str
    dots: tuple[Dot, ...]

    @property
    def path(self) -> str:
        """`x,y x,y …`."""
        return " ".join(f"{dot.x},{dot.y}" for dot in self.dots)


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines over two axes that begin at 0."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    limit: Tick | None = None
    """A bound of the service level: its height, and its words."""
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def plot(
    title: str, *, x_label: str, y_label: str, series: Sequence[Series], limit: float | None = None
) -> Plot:
    """Both axes reach beyond the highest value, and the limit."""
    values = [value for one in series for value in one.values]
    x_ticks = ticks(max((v.x for v in values), default=1.0))
    y_ticks = ticks(max([v.high for v in values] + ([limit] if limit else []), default=1.0))
    x_most, y_most = x_ticks[-1], y_ticks[-1]

    def across(x: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * x / x_most, 1)

    def up(y: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y / y_most, 1)

    def dots(one: Series) -> tuple[Dot, ...]:
        ordered = sorted(one.values, key=lambda v: v.x)
        return tuple(Dot(across(v.x), up(v.y), up(v.low), up(v.high), v.text) for v in ordered)

    return Plot(
        title,
        x_label,
        y_label,
        lines=tuple(Line(one.label, dots(one)) for one in series if one.values),
        x_ticks=tuple(Tick(across(t), f"{t:g}") for t in x_ticks),
        y_ticks=tuple(Tick(up(t), f"{t:g}") for t in y_ticks),
        limit=Tick(up(limit), f"limit {limit:g}") if limit else None,
    )


def ticks(most: float) -> tuple[float, ...]:
    """Round numbers from 0 to the first one that is not below `most`.

    >>> ticks(47.0), ticks(0.3)
    ((0.0, 10.0, 20.0, 30.0, 40.0, 50.0), (0.0, 0.1, 0.2, 0.3))
    """
    if not (math.isfinite(most) and most > 0):
        return (0.0, 1.0)
    raw = most / ABOUT_TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * (1 - 1e-9))
    count = math.ceil(most / step - 1e-9)
    return tuple(round(step * i, 12) for i in range(count + 1))
