"""Trials of an experiment → what each variant is beside the first, and whether that was expected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median_low
from typing import TypeAlias

from launcher.bench.decide import gain, margin
from launcher.model.experiment import Contrast, DecidingFigure, Experiment, Finding
from launcher.model.tune import Trial, Word

Found: TypeAlias = Mapping[str, Mapping[str, Trial]]
"""Variant → point → what it was there."""


def contrasts(experiment: Experiment, found: Found) -> Iterator[Contrast]:
    """Each variant but the first at each point."""
    first, *others = experiment.variants
    for point in experiment.points:
        for variant in others:
            before, after = found[first.id].get(point, Trial()), found[variant.id].get(point, Trial())
            expected = variant.expect.get(point)
            finding, reason, share = _beside(before, after, experiment, expected)
            yield Contrast(point, variant.id, finding, reason, share)


def _beside(
    before: Trial, after: Trial, experiment: Experiment, expected: Word | None
) -> tuple[Finding, str, float | None]:
    figure = experiment.figure
    if failed := before.failed or after.failed:
        return "cannot tell", f"it did not come up: {failed}", None
    if doubts := (*before.doubts, *after.doubts):
        return "cannot tell", f"the figures cannot be trusted: {doubts[0]}", None
    share = gain(before, after, figure)
    if share is None:
        return "cannot tell", f"there is no {figure} of both", None
    within = margin(before, after, figure, experiment.noise)
    said = "no different beyond noise" if abs(share) <= within else "better" if share > 0 else "worse"
    reason = f"{said}: {_values(before, after, figure)}, noise {within:.1%}"
    if expected is None:
        return "nothing expected", reason, share
    return "as expected" if said == expected else "not as expected", reason, share


def _values(before: Trial, after: Trial, figure: DecidingFigure) -> str:
    old, new = median_low(before.figures[figure]), median_low(after.figures[figure])
    return f"{figure} {old:,.1f} → {new:,.1f} ({(new - old) / old:+.1%})"
