"""Figures that runs are compared by, and what each is called; knows no limit and no file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

from launcher.bench.measure import figure
from launcher.model.bench import Result, Sides
from launcher.model.sla import LimitName, Statistic


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a run."""

    name: LimitName
    of: Statistic
    head: str
    """Of its column, unit included."""
    definition: str
    """The word of `DEFINITIONS` that says what it is."""

    @property
    def lower_is_better(self) -> bool:
        """Times; tokens a second are the other way round."""
        return self.name.endswith("_ms")

    def __str__(self) -> str:
        return f"{self.name} {self.of}"


FIGURES: tuple[Figure, ...] = (
    Figure("ttft_ms", "mean", "TTFT ms", "TTFT"),
    Figure("ttft_ms", "p50", "P50", "TTFT"),
    Figure("ttft_ms", "p90", "P90", "TTFT"),
    Figure("ttft_ms", "p99", "P99", "TTFT"),
    Figure("tpot_ms", "mean", "TPOT ms", "TPOT"),
    Figure("tpot_ms", "p99", "P99", "TPOT"),
    Figure("itl_ms", "p99", "ITL P99 ms", "ITL"),
    Figure("e2e_ms", "mean", "E2E ms", "E2E"),
    Figure("e2e_ms", "p99", "P99", "E2E"),
    Figure("tokens_per_s", "mean", "tok/s", "tok/s"),
)


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over the runs at a point."""

    middle: float
    """The lower median of the runs: one of them."""
    half: float
    """Half of what lies between their lowest and highest."""
    runs: int

    @property
    def share(self) -> float:
        """The half as a share of the middle."""
        return self.half / self.middle if self.middle else 0.0


def spread(results: Sequence[Result], sides: Sides, what: Figure) -> Spread | None:
    """None where any run has no such figure."""
    values = [figure(result, sides, what.name, what.of) for result in results]
    known = [v for v in values if v is not None]
    if not known or len(known) < len(values):
        return None
    return Spread(median_low(known), (max(known) - min(known)) / 2, len(known))
