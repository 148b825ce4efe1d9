"""configs/rules: every rule fires where it says, is silent at its near miss, and at all that we ship."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import SAMPLES, sample

from launcher.flows import alone, trial
from launcher.flows.launches import accepted_of, launches_of
from launcher.lint.evaluate import evaluate
from launcher.load.data import Data, shipped
from launcher.model.rule import Rule
from launcher.model.wish import Wanted
from launcher.resolve import resolve

DATA = Data((shipped(),))
KNOWN = trial.known_in(DATA)
KNOWLEDGE = KNOWN.knowledge


@pytest.mark.parametrize("rule", KNOWLEDGE.rules, ids=lambda rule: rule.id)
def test_a_rule_fires_where_it_says_and_not_at_its_near_miss(rule: Rule) -> None:
    assert list(trial.wrong_samples(rule, KNOWN)) == []


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
