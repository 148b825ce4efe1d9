"""An experiment as text: what it will do before, its figures and findings after."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from launcher.cli.words import columns
from launcher.flows.experiment import Arm, Told
from launcher.flows.experiment_report import figures
from launcher.model.experiment import Experiment

WIDTH = 106


def path_text(experiment: Experiment, arms: Sequence[Arm]) -> str:
    """What is expected, under which points, and what each variant changes."""
    return "\n".join(_path(experiment, arms))


def _path(experiment: Experiment, arms: Sequence[Arm]) -> Iterator[str]:
    yield f"{experiment.name}: {experiment.about}"
    yield from textwrap.wrap(f"expected: {experiment.hypothesis} ({experiment.known_from})", WIDTH)
    points = ", ".join(f"{name} ({asked.workload})" for name, asked in experiment.points.items())
    yield f"points: {points}; {experiment.repeats} runs each; decides: {experiment.figure}"
    for arm in arms:
        model = f", model {arm.variant.model}" if arm.variant.model else ""
        yield f"{arm.variant.id}: layout {arm.variant.layout}{model}"
        yield from (f"  {change}" for change in arm.changes)


def text(told: Told) -> str:
    """The figures, then what each variant is beside the first."""
    table = figures(told)
    found = columns([table.heads, *table.rows], left=("point", "load", "variant", "service level"))
    lines = [f"{c.variant} at {c.point}: {c.finding}: {c.reason}" for c in told.contrasts]
    return "\n".join((found, "", *lines)) if lines else found
