"""trial: what a rule says of its own samples; knows how a sample becomes launches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from launcher.flows.lint import read
from launcher.lint.evaluate import evaluate
from launcher.load.choice import Choice, names
from launcher.load.choice import read as chosen
from launcher.load.data import Data, roots_of
from launcher.load.foreign import Given, read_text
from launcher.load.schema import near
from launcher.model.finding import State
from launcher.model.knowledge import Knowledge
from launcher.model.launch import Launch
from launcher.model.problem import InputError, Problem
from launcher.model.profile import Hardware, Model
from launcher.model.rule import Rule, Sample

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Known:
    """All that a trial is held known."""

    knowledge: Knowledge
    models: Mapping[str, Model]
    hardware: Mapping[str, Hardware]


def known_in(data: Data) -> Known:
    """Of these folders. InputError with every mistake in them."""
    return Known(
        knowledge=read(data),
        models={name: chosen(Model, Choice(name, ""), data) for name in names(Model, data)},
        hardware={name: chosen(Hardware, Choice(name, ""), data) for name in names(Hardware, data)},
    )


def trial(rule: Rule, *, data_dir: Path | None = None) -> tuple[Problem, ...]:
    """Each sample that the rule ought to fire at and does not, or the other way round."""
    known = known_in(Data(roots_of(data_dir)))
    return tuple(wrong_samples(rule, known))


def wrong_samples(rule: Rule, known: Known) -> Iterator[Problem]:
    """The same, by what is read already. InputError where a sample is none."""
    for word, samples in (("fires", rule.fires), ("passes", rule.passes)):
        for shown in samples:
            states = _states(rule, shown, known)
            if ("fires" in states) != (word == "fires"):
                does = "fires" if "fires" in states else "does not fire"
                yield Problem(
                    what=f"rule {rule.id} {does} at a sample that stands under `{word}`",
                    where=rule.source,
                    why=f"{shown.engine}: " + " | ".join(_texts(shown).values()),
                    do="correct `when`, `since`, `until` or `pools`, or the sample",
                )


def _states(rule: Rule, shown: Sample, known: Known) -> list[State]:
    asked = replace(known.knowledge, rules=(rule,))
    return [finding.state for finding in evaluate(asked, tuple(_launches(rule, shown, known)))]


def _launches(rule: Rule, shown: Sample, known: Known) -> Iterator[Launch]:
    """What a sample starts; it is of the side that the sample says, or else the one its rule is about."""
    for pool, text in _texts(shown).items():
        given = Given(
            snapshots=known.knowledge.snapshots,
            models=tuple(known.models.values()),
            model=_named(known.models, shown.model, rule),
            hardware=_named(known.hardware, shown.hardware, rule),
            version="" if shown.engine == "unknown" else shown.engine,
            pool=pool,
        )
        started = read_text(text, "sample", given=given).launches
        if not started:
            what = f"a sample of rule {rule.id} starts no vLLM"
            raise InputError(Problem(what, rule.source, why=text, do="write it as `vllm serve …`"))
        for launch in started:
            told = launch.pool or not rule.pools
            yield launch if told else replace(launch, pool=rule.pools[0], disaggregated=True)


def _named(parts: Mapping[str, T], name: str, rule: Rule) -> T:
    if name not in parts:
        what = f"a sample of rule {rule.id} names `{name}`, which is not known"
        raise InputError(Problem(what, rule.source, do=near(name, parts)))
    return parts[name]


def _texts(shown: Sample) -> dict[str, str]:
    """Side → text; a sample for no side in particular has it under no name."""
    sides = {"": shown.text, "prefill": shown.prefill, "decode": shown.decode}
    return {side: text for side, text in sides.items() if text}
