"""Trials of an experiment → what each variant is beside the first, and whether that was expected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from launcher.bench.decide import apart
from launcher.model.experiment import Contrast, Experiment, Finding
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
    found = apart(before, after, figure)
    if found is None:
        return "cannot tell", f"there is no {figure} of both", None
    share, word, within = -found.worse_by, found.word(experiment.noise), found.within(experiment.noise)
    reason = f"{word or 'no different beyond noise'}: {found}, noise {within:.1%}"
    if expected is None:
        return "nothing expected", reason, share
    if word is None and within > experiment.noise:
        # what was expected may be there, below what runs of one variant differ by
        return "cannot tell", reason, share
    return "as expected" if word == expected else "not as expected", reason, share
