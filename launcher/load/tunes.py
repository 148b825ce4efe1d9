"""configs/tunes and configs/records → Tune and Records; holds a record against its tune; knows no layout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from launcher.load.choice import Choice, open_chosen
from launcher.load.collect import Collector
from launcher.load.data import Data
from launcher.load.document import Document, Value
from launcher.load.points import read_points
from launcher.load.schema import fill, filled, near
from launcher.model.performance import Point
from launcher.model.problem import InputError, Problem
from launcher.model.tune import FigureName, RecordedTrial, Records, Tune, TuneStep

EDITS = ("change", "during")
"""Parts of a layout file: kept as they are written, and read as part of one."""


def read_tune(choice: Choice, data: Data) -> Tune:
    """A tune. InputError with all that is wrong with it."""
    document = open_chosen(Tune, choice, data)
    values = mapping(document.values)
    written = mapping(values.get("steps", ""))
    problems = Collector()
    steps = [problems.attempt(partial(_step, i, mapping(v), document)) for i, v in written.items()]
    problems.raise_any()
    rest = {name: value for name, value in values.items() if name != "steps"}
    given = {"name": choice.name, "steps": tuple(steps)}
    tune = fill(Tune, rest, place=document.place, given=given)
    return replace(tune, steps=tuple(s for s in steps if s))


def _step(name: str, values: Mapping[str, Value], document: Document) -> TuneStep:
    def place(location: tuple[str | int, ...]) -> str:
        return document.place(("steps", name, *location))

    rest = {key: value for key, value in values.items() if key not in EDITS}
    step = fill(TuneStep, rest, place=place, given={"id": name})
    change, during = (mapping(values.get(key, "")) for key in EDITS)
    if not change:
        what = f"step {name} changes nothing"
        raise InputError(Problem(what, where=place(()), do="add `change:`, a part of a layout"))
    return replace(step, change=dict(change), during=dict(during))


def read_records(given: str, data: Data) -> tuple[Records, Tune]:
    """A record by its name in configs/records, or a file by its path, and the tune that it is of. InputError
    with all that does not fit."""
    path = Path(given)
    if path.suffix in (".yaml", ".yml", ".json"):
        document, name = data.document(path), path.stem
    else:
        document, name = open_chosen(Records, Choice(given, "--from"), data), given
    records = filled(Records, document, name=name)
    tune = read_tune(Choice(records.tune, document.place(("tune",))), data)
    problems = Collector()
    problems.keep(_step_problems(records, tune))
    points = read_points(data)
    start = problems.attempt(partial(_published, records.start, points, tune))
    steps = {n: problems.attempt(partial(_published, t, points, tune)) or t for n, t in records.steps.items()}
    problems.raise_any()
    return replace(records, start=start or records.start, steps=steps), tune


def _published(trial: RecordedTrial, points: Mapping[str, Point], tune: Tune) -> RecordedTrial:
    """With the figures of the point that it names, tokens a second over the GPUs of its instance."""
    if not trial.point:
        return trial
    if trial.point not in points:
        what = f"unknown point `{trial.point}` of configs/points"
        raise InputError(Problem(what, trial.source, do=near(trial.point, points)))
    point = points[trial.point]
    figures: dict[FigureName, tuple[float, ...]] = {}
    for name, value in point.measured.items():
        if name != "tokens_per_s":
            figures[name] = (value,)
        elif tune.pool == "prefill":
            figures["tokens_per_s_per_gpu"] = (value / (point.tensor_parallel * point.data_parallel),)
    return replace(trial, figures=figures, requests_at_once=point.concurrency, known_from=point.known_from)


def _step_problems(records: Records, tune: Tune) -> Iterator[Problem]:
    known = [step.id for step in tune.steps]
    for name, trial in (("start", records.start), *records.steps.items()):
        if name not in (*known, "start"):
            yield Problem(f"unknown step `{name}` of tune {tune.name}", trial.source, do=near(name, known))
        if not (trial.known_from or trial.point):
            yield Problem("nobody knows where this is from", trial.source, do="add `known_from:` or `point:`")
        if trial.figures and not trial.requests_at_once:
            what = "figures without the load that they were measured under"
            yield Problem(what, where=trial.source, do="add `requests_at_once:`")


def mapping(value: Value) -> Mapping[str, Value]:
    """What is one; of anything else nothing, for its type is complained of elsewhere."""
    return value if isinstance(value, dict) else {}
