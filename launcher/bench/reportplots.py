"""Measurements → the plots of a report: a line a run, and the bound of the service level."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from launcher.bench.figures import FIGURES, Figure, Spread, spread
from launcher.bench.plot import Plot, Series, Value, plot
from launcher.model.bench import Measured
from launcher.model.measurement import Measurement
from launcher.model.sla import LimitName

NAMED = {str(figure): figure for figure in FIGURES}
TTFT, TPOT, TOKENS = NAMED["ttft_ms mean"], NAMED["tpot_ms mean"], NAMED["tokens_per_s mean"]


def plots_of(measurements: Sequence[Measurement]) -> tuple[Plot, ...]:
    """TTFT, TPOT and throughput over load; throughput against TTFT; throughput of a GPU against a user's."""
    label = _load_label(measurements)

    def over_load(title: str, what: Figure, unit: str) -> Plot:
        lines = [_over_load(one, what) for one in measurements]
        return plot(title, x_label=label, y_label=unit, series=lines, limit=_limit(measurements, what.name))

    return (
        over_load("TTFT over load", TTFT, "mean TTFT, ms"),
        over_load("TPOT over load", TPOT, "mean TPOT, ms"),
        over_load("Throughput over load", TOKENS, "tok/s"),
        plot(
            "Throughput against TTFT",
            x_label="tok/s",
            y_label="mean TTFT, ms",
            series=[_against(one, lambda m, one: spread(m.results, one, TTFT)) for one in measurements],
            limit=_limit(measurements, "ttft_ms"),
        ),
        plot(
            "Throughput against a user's",
            x_label="tok/s",
            y_label="tok/s of a user",
            series=[_against(one, _per_user) for one in measurements],
        ),
    )


def load_of(m: Measured) -> float:
    """Where a point stands on the axis of loads."""
    return float(m.point.rate or m.point.concurrency or m.point.prompts)


def _load_label(measurements: Sequence[Measurement]) -> str:
    points = [m.point for one in measurements for m in one.points]
    if any(p.rate for p in points):
        return "requests/s asked for"
    return "requests at once" if any(p.concurrency for p in points) else "prompts, all at once"


def _over_load(one: Measurement, what: Figure) -> Series:
    return Series(one.label, tuple(_values(one, what)))


def _values(one: Measurement, what: Figure) -> Iterator[Value]:
    for m in one.points:
        if own := spread(m.results, one, what):
            yield _value(load_of(m), own, f"{one.label}, {m.point}: {what} {own.middle:.2f}")


def _against(one: Measurement, over: Callable[[Measured, Measurement], Spread | None]) -> Series:
    found = []
    for m in one.points:
        tokens, own = spread(m.results, one, TOKENS), over(m, one)
        if tokens and own:
            text = f"{one.label}, {m.point}: {tokens.middle:.1f} tok/s, {own.middle:.2f}"
            found.append(_value(tokens.middle, own, text))
    return Series(one.label, tuple(found))


def _per_user(m: Measured, one: Measurement) -> Spread | None:
    own = spread(m.results, one, TPOT)
    if own is None or not own.middle:
        return None
    return Spread(1000 / own.middle, 0.0, own.runs)


def _value(x: float, own: Spread, text: str) -> Value:
    return Value(x, own.middle, own.middle - own.half, own.middle + own.half, text)


def _limit(measurements: Sequence[Measurement], name: LimitName) -> float | None:
    found = {one.sla.limits[name].at_most for one in measurements if one.sla and name in one.sla.limits}
    return found.pop() if len(found) == 1 else None
