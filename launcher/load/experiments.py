"""configs/experiments → Experiment; knows no layout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from launcher.load.choice import Choice, names, open_chosen
from launcher.load.collect import Collector
from launcher.load.data import Data
from launcher.load.document import Document, Value
from launcher.load.schema import fill, near
from launcher.load.sla import read_workload
from launcher.load.tunes import mapping
from launcher.model.experiment import Asked, Experiment, Variant
from launcher.model.problem import Problem
from launcher.model.sla import Sla, Workload


def experiment_names(data: Data) -> list[str]:
    """Those there are."""
    return names(Experiment, data)


def read_experiment(choice: Choice, data: Data) -> Experiment:
    """An experiment. InputError with all that is wrong with it."""
    document = open_chosen(Experiment, choice, data)
    values = mapping(document.values)
    problems = Collector()
    written = mapping(values.get("variants", ""))
    variants = [problems.attempt(partial(_variant, i, mapping(v), document)) for i, v in written.items()]
    problems.raise_any()
    rest = {name: value for name, value in values.items() if name != "variants"}
    found = tuple(v for v in variants if v)
    given = {"name": choice.name, "variants": found}
    experiment = replace(fill(Experiment, rest, place=document.place, given=given), variants=found)
    problems.keep(_expectations(experiment))
    for asked in experiment.points.values():
        problems.attempt(partial(load_of, asked, data))
    problems.raise_any()
    return experiment


def load_of(asked: Asked, data: Data) -> tuple[Workload, Sla | None]:
    """A point's workload, with what is different of it there and one concurrency, and its service level."""
    workload, sla = read_workload(Choice(asked.workload, asked.source), data)
    at_once = asked.concurrency or max(workload.concurrency, default=None)
    changed = replace(
        workload,
        input_tokens=asked.input_tokens or workload.input_tokens,
        output_tokens=asked.output_tokens or workload.output_tokens,
        prompts=asked.prompts or workload.prompts,
        concurrency=(at_once,) if at_once else (),
    )
    return changed, sla


def _variant(name: str, values: Mapping[str, Value], document: Document) -> Variant:
    def place(location: tuple[str | int, ...]) -> str:
        return document.place(("variants", name, *location))

    rest = {key: value for key, value in values.items() if key != "change"}
    variant = fill(Variant, rest, place=place, given={"id": name})
    return replace(variant, change=dict(mapping(values.get("change", ""))))


def _expectations(experiment: Experiment) -> Iterator[Problem]:
    first, *others = experiment.variants
    if first.expect:
        what = f"variant {first.id} is what the others are held against, and has an `expect:` itself"
        yield Problem(what, where=first.source, do="remove it")
    for variant in others:
        for point in variant.expect.keys() - experiment.points.keys():
            what = f"variant {variant.id} is expected to be something at the unknown point `{point}`"
            yield Problem(what, where=variant.source, do=near(point, experiment.points))
