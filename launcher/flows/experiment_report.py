"""An experiment that has ended → the page's own section, and JSON for programs; knows no host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median_low

from launcher.bench.keep import plain
from launcher.bench.page import Section, Table, Word
from launcher.bench.plot import Plot, Series, Value, plot
from launcher.flows.experiment import Seen, Told, merged
from launcher.flows.report import reports
from launcher.load.data import Data
from launcher.model.experiment import Finding
from launcher.model.measurement import Measurement
from launcher.model.tune import FigureName, Trial
from launcher.model.values import Json

FORMAT = 1
"""Of the JSON; it rises when what is there already changes its meaning or goes."""
HEADS: Mapping[FigureName, str] = {
    "tokens_per_s_per_gpu": "tok/s per GPU",
    "ttft_ms": "TTFT ms",
    "tpot_ms": "TPOT ms",
}
VERDICTS: Mapping[Finding, str] = {
    "as expected": "PASS",
    "not as expected": "FAIL",
    "cannot tell": "CANNOT TELL",
    "nothing expected": "",
}
"""Their colours on the page."""


def pages(told: Told, data: Data) -> Mapping[str, str]:
    """Ending of a file → its text: variants side by side, and each whole. Nothing where none was measured."""
    measured = [made for seen in told.seen for made in merged(seen)]
    return reports(measured, data, lead=(section(told),)) if measured else {}


def section(told: Told) -> Section:
    """The hypothesis, what the variants change, and what came of it."""
    points = told.experiment.points
    plots = (_plot(told),) if len(points) > 1 else ()
    return Section(f"Experiment {told.experiment.name}", tuple(_words(told)), (figures(told),), plots)


def _words(told: Told) -> Iterator[Word]:
    experiment = told.experiment
    yield Word(f"{experiment.about} Expected: {experiment.hypothesis} ({experiment.known_from}).")
    for seen in told.seen:
        model = f", model {seen.arm.variant.model}" if seen.arm.variant.model else ""
        changes = ", ".join(seen.arm.changes) or "what the others are held against"
        yield Word(f"{seen.arm.variant.id}: layout {seen.arm.variant.layout}{model}; {changes}")
        if seen.failed:
            yield Word(f"{seen.arm.variant.id} did not come up: {seen.failed}", "FAIL")
    for c in told.contrasts:
        yield Word(f"{c.variant} at {c.point}: {c.finding}: {c.reason}", VERDICTS[c.finding])


def figures(told: Told) -> Table:
    """A row a point and variant: medians of the runs' means."""
    heads = ("point", "load", "variant", *HEADS.values(), "service level")
    return Table(heads, tuple(_rows(told)))


def _rows(told: Told) -> Iterator[tuple[str, ...]]:
    for name in told.experiment.points:
        for seen in told.seen:
            made, trial = seen.measured.get(name), seen.trials.get(name, Trial())
            values = (f"{middle:,.2f}" if (middle := _middle(trial, f)) is not None else "–" for f in HEADS)
            verdict = made.points[0].verdict if made and made.sla else "–"
            yield (name, _load(made) if made else "–", seen.arm.variant.id, *values, verdict)


def _load(made: Measurement) -> str:
    load = made.workload
    return f"{load.name} ({load.input_tokens} + {load.output_tokens}), {made.points[0].point}"


def _middle(trial: Trial, figure: FigureName) -> float | None:
    return median_low(trial.figures[figure]) if trial.figures.get(figure) else None


def _plot(told: Told) -> Plot:
    """The deciding figure of each variant over what points differ in: prompts, or else requests at once."""
    figure = told.experiment.figure
    lengths = {made.workload.input_tokens for seen in told.seen for made in seen.measured.values()}
    label = "tokens of a prompt" if len(lengths) > 1 else "requests at once"
    lines = [
        Series(seen.arm.variant.id, tuple(_values(seen, figure, over_lengths=len(lengths) > 1)))
        for seen in told.seen
    ]
    return plot(f"{HEADS[figure]} of each variant", x_label=label, y_label=HEADS[figure], series=lines)


def _values(seen: Seen, figure: FigureName, *, over_lengths: bool) -> Iterator[Value]:
    for name, made in seen.measured.items():
        own = seen.trials[name].figures.get(figure)
        if own:
            x = made.workload.input_tokens if over_lengths else made.points[0].point.concurrency or 0
            middle = median_low(own)
            text = f"{seen.arm.variant.id}, {name}: {middle:.2f}"
            yield Value(float(x), middle, min(own), max(own), text)


def document(told: Told) -> dict[str, Json]:
    """The same for programs; the measurements themselves are files beside it."""
    experiment = told.experiment
    return {
        "format": FORMAT,
        "experiment": experiment.name,
        "hypothesis": experiment.hypothesis,
        "known_from": experiment.known_from,
        "figure": experiment.figure,
        "variants": [_variant(seen) for seen in told.seen],
        "contrasts": [plain(c) for c in told.contrasts],
    }


def _variant(seen: Seen) -> Json:
    variant = seen.arm.variant
    return {
        "id": variant.id,
        "layout": variant.layout,
        "model": variant.model,
        "changes": list(seen.arm.changes),
        "failed": seen.failed,
        "points": {name: plain(trial) for name, trial in seen.trials.items()},
    }
