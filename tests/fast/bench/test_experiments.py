"""Shipped experiments: each variant can serve, is another one than the first, and has room for its points."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.fit import budget
from launcher.flows.experiment import dry
from launcher.flows.launches import launches_of
from launcher.flows.lint import read
from launcher.flows.pool_shapes import pool_shapes
from launcher.lint.evaluate import evaluate
from launcher.load.choice import Choice
from launcher.load.data import Data, shipped
from launcher.load.experiments import experiment_names, load_of, read_experiment
from launcher.model.problem import InputError

DATA = Data((shipped(),))
KNOWLEDGE = read(DATA)
NAMES = experiment_names(DATA)


@pytest.mark.parametrize("name", NAMES)
def test_each_variant_can_serve_and_is_another_one(name: str, tmp_path: Path) -> None:
    """No rule refuses it, and it differs from the first in the engines' command lines or in the model."""
    experiment = read_experiment(Choice(name, ""), DATA)
    first, *others = dry(experiment, data_dir=None, folder=tmp_path)
    assert all(arm.changes or arm.variant.model != first.variant.model for arm in others)
    for arm in (first, *others):
        errors = [
            f for f in evaluate(KNOWLEDGE, launches_of(arm.wanted)) if f.counts and f.severity == "error"
        ]
        assert not errors, arm.variant.id


@pytest.mark.parametrize("name", [n for n in NAMES if n != "sandbox"])
def test_memory_has_room_for_each_point(name: str, tmp_path: Path) -> None:
    """All requests at once of a point fit into the KV of the decode that gets them: none is preempted."""
    experiment = read_experiment(Choice(name, ""), DATA)
    for arm in dry(experiment, data_dir=None, folder=tmp_path):
        for asked in experiment.points.values():
            load, _ = load_of(asked, DATA)
            for pool in pool_shapes(arm.wanted, KNOWLEDGE):
                if pool.pool != "decode":
                    continue
                tokens = load.input_tokens + load.output_tokens
                held = budget(pool.architecture, pool.hardware, pool.shape).requests_per_rank(tokens)
                assert held * pool.shape.data_parallel >= max(load.concurrency), (arm.variant.id, asked)


def test_an_experiment_says_all_that_is_wrong_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "configs/experiments"
    folder.mkdir(parents=True)
    text = (shipped() / "configs/experiments/sandbox.yaml").read_text()
    wrong = text.replace('expect: {"8"', 'expect: {"9"').replace("workload: smoke", "workload: smoky")
    (folder / "own.yaml").write_text(wrong)
    with pytest.raises(InputError) as error:
        read_experiment(Choice("own", ""), Data((tmp_path, shipped())))
    assert [p.what.partition(" (")[0] for p in error.value.problems] == [
        "unknown workload `smoky`",
        "variant one is expected to be something at the unknown point `9`",
    ]
