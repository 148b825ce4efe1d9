"""Figures that runs are compared by, and what each is called; knows no limit and no file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

from launcher.bench.measure import figure
from launcher.model.bench import Result, Sides
from launcher.model.sla import LimitName, Statistic
from launcher.model.tune import Word


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a run."""

    name: LimitName
    of: Statistic
    head: str
    """Of its column, unit included."""
    definition: str
    """The word of `DEFINITIONS` that says what it is."""

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


def spread_of(values: Sequence[float]) -> Spread:
    """Of at least one run."""
    return Spread(median_low(values), (max(values) - min(values)) / 2, len(values))


@dataclass(frozen=True, slots=True)
class Apart:
    """A figure before and after a change: how far apart the two are, and how far runs of one side are."""

    name: str
    """Of times, which end in `_ms`, less is better; of all else more is."""
    before: Spread
    after: Spread

    @property
    def ratio(self) -> float:
        """After over before."""
        return self.after.middle / self.before.middle if self.before.middle else float("inf")

    @property
    def worse_by(self) -> float:
        """As a share of before; negative: better."""
        old, new = self.before.middle, self.after.middle
        if not old:
            return float("inf")
        return (new - old) / old if self.name.endswith("_ms") else (old - new) / old

    @property
    def noise(self) -> float | None:
        """Half of what lies between the runs of each side, together, as a share of before.

        A side of one run is held to be as noisy as the other; None where no side has two.
        """
        shares = [s.share if s.runs > 1 else None for s in (self.before, self.after)]
        known = [share for share in shares if share is not None]
        if not known:
            return None
        was, now = (known[0] if share is None else share for share in shares)
        return was + now * self.ratio

    def within(self, least: float) -> float:
        """The share up to which the two are no different: `least`, or noise where that is more."""
        return max(least, self.noise or 0.0)

    def word(self, least: float) -> Word | None:
        """Which of both the change made it; None: neither, by more than that."""
        if abs(self.worse_by) <= self.within(least):
            return None
        return "worse" if self.worse_by > 0 else "better"

    def __str__(self) -> str:
        return f"{self.name} {self.before.middle:,.1f} → {self.after.middle:,.1f} ({self.ratio - 1:+.1%})"


def spread(results: Sequence[Result], sides: Sides, what: Figure) -> Spread | None:
    """None where any run has no such figure."""
    values = [figure(result, sides, what.name, what.of) for result in results]
    known = [v for v in values if v is not None]
    if not known or len(known) < len(values):
        return None
    return spread_of(known)
