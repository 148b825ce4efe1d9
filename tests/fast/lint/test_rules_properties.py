"""What a launch means does not depend on how it is written, and more of it takes no finding away."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

import pytest

from launcher.flows import lint
from launcher.lint.evaluate import evaluate
from launcher.load.choice import Choice, read
from launcher.load.data import Data, shipped
from launcher.load.foreign import Given, read_text
from launcher.model.profile import Hardware, Model
from launcher.model.values import Json

DATA = Data((shipped(),))
KNOWLEDGE = lint.read(DATA)
MODEL = read(Model, Choice("deepseek-v3.2", ""), DATA)
HARDWARE = read(Hardware, Choice("h200", ""), DATA)
FLAGS: dict[str, Json] = {
    "tensor-parallel-size": 8,
    "data-parallel-size": 4,
    "data-parallel-size-local": 2,
    "data-parallel-start-rank": 2,
    "enable-expert-parallel": True,
    "enable-eplb": True,
    "all2all-backend": "deepep_low_latency",
    "max-num-seqs": 512,
    "max-num-batched-tokens": 256,
    "headless": True,
    "enforce-eager": True,
    "async-scheduling": True,
    "kv-cache-dtype": "fp8",
    "max-num-sqes": 1,
    "eplb-config": {"num_redundant_experts": 3, "use_async": True},
    "kv-transfer-config": {"kv_connector": "NixlConnector", "kv_role": "kv_producer"},
    "speculative-config": {"method": "mtp", "num_speculative_tokens": 3},
}
UNRELATED = ["--seed 7", "--uvicorn-log-level info", "--disable-uvicorn-access-log"]


def words(name: str, *, sign: str, dotted: bool) -> list[str]:
    """One flag: with `=` or a blank before its value, a mapping as JSON or key by key."""
    value = FLAGS[name]
    if isinstance(value, dict) and dotted:
        return [f"--{name}.{key}{sign}{_written(inner)}" for key, inner in value.items()]
    return [f"--{name}" if value is True else f"--{name}{sign}'{_written(value)}'"]


def _written(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def found(flags: Sequence[str], release: str) -> set[str]:
    """The rules that speak up at a launch."""
    told = Given(snapshots=KNOWLEDGE.snapshots, model=MODEL, hardware=HARDWARE, version=release)
    launches = read_text(" ".join(["vllm serve /m", *flags]), "run.sh", given=told).launches
    return {f"{f.rule} {f.state}" for f in evaluate(KNOWLEDGE, launches)}


@pytest.mark.parametrize("release", ["0.14.1", "0.18.0", "0.26.0", "0.33.0", ""])
def test_order_spelling_and_unrelated_flags_change_no_finding(release: str) -> None:
    random = Random(release)
    spoken: set[str] = set()
    for _ in range(12):
        names = random.sample(sorted(FLAGS), random.randint(3, 12))
        plain = [word for name in names for word in words(name, sign=" ", dotted=False)]
        other = [word for name in names for word in words(name, sign="=", dotted=True)] + UNRELATED
        random.shuffle(other)
        assert found(plain, release) == found(other, release), (plain, other)
        spoken |= found(plain, release)
    assert len(spoken) > 10, "or the flags say nothing"
