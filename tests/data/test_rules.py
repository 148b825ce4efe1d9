"""configs/rules: every rule fires where it says, is silent at its near miss, and at all that we ship."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from samples import SAMPLES, sample

from launcher.flows import alone, lint
from launcher.flows.launches import accepted_of, launches_of
from launcher.lint.evaluate import evaluate
from launcher.load.choice import Choice, names, read
from launcher.load.data import Data, shipped
from launcher.load.foreign import Given, read_text
from launcher.model.knowledge import Knowledge
from launcher.model.launch import Launch
from launcher.model.profile import Hardware, Model
from launcher.model.rule import Rule, Sample
from launcher.model.wish import Wanted
from launcher.resolve import resolve

DATA = Data((shipped(),))
KNOWLEDGE = lint.read(DATA)
MODELS = {name: read(Model, Choice(name, ""), DATA) for name in names(Model, DATA)}
HARDWARE = {name: read(Hardware, Choice(name, ""), DATA) for name in names(Hardware, DATA)}


def launches(rule: Rule, shown: Sample) -> Iterator[Launch]:
    """What a sample starts; it is of the side that the sample says, or else the one its rule is about."""
    for text, pool in ((shown.text, ""), (shown.prefill, "prefill"), (shown.decode, "decode")):
        if not text:
            continue
        given = Given(
            snapshots=KNOWLEDGE.snapshots,
            models=tuple(MODELS.values()),
            model=MODELS[shown.model],
            hardware=HARDWARE[shown.hardware],
            version="" if shown.engine == "unknown" else shown.engine,
            pool=pool,
        )
        reading = read_text(text, "sample", given=given)
        assert reading.launches, f"{rule.source}: nothing is started by {text!r}"
        for launch in reading.launches:
            told = launch.pool or not rule.pools
            yield launch if told else replace(launch, pool=rule.pools[0], disaggregated=True)


def states(rule: Rule, shown: Sample) -> list[str]:
    """How the rule speaks up at a sample, if it does."""
    asked = Knowledge(KNOWLEDGE.history, (rule,), KNOWLEDGE.snapshots)
    return [finding.state for finding in evaluate(asked, tuple(launches(rule, shown)))]


@pytest.mark.parametrize("rule", KNOWLEDGE.rules, ids=lambda rule: rule.id)
def test_a_rule_fires_where_it_says_and_not_at_its_near_miss(rule: Rule) -> None:
    for shown in rule.fires:
        assert "fires" in states(rule, shown), f"{rule.source}: silent at {shown}"
    for shown in rule.passes:
        assert "fires" not in states(rule, shown), f"{rule.source}: speaks up at {shown}"


def test_there_are_rules_for_what_the_facts_hold() -> None:
    assert len(KNOWLEDGE.rules) >= 80


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_inventory_is_clean(name: str, tmp_path: Path) -> None:
    clean(resolve(sample(name, tmp_path)))


@pytest.mark.parametrize("name", DATA.names("configs/layouts", holding=".yaml"))
def test_every_layout_is_clean_or_says_why_not(name: str) -> None:
    kind = name.partition("-")[0]
    stack = {"article": "article-0.14", "sandbox": "sandbox-cpu"}.get(kind, "current")
    hardware, model = ("cpu", "tiny") if kind == "sandbox" else ("h200", "deepseek-v3.2")
    clean(alone.wanted_of_layout(alone.Names(name, stack, hardware, model), DATA))


def clean(wanted: Wanted) -> None:
    """No error, no warning, nothing that cannot be told; and each reason is for something that is found."""
    findings = evaluate(KNOWLEDGE, launches_of(wanted))
    assert [f"{f.severity} {f.rule}: {f.what}" for f in findings if f.counts] == []
    assert [f"{f.rule} on {f.because}" for f in findings if f.state == "depends"] == []
    assert set(accepted_of(wanted)) == {f.rule for f in findings if f.state == "accepted"}
