"""Settings against what a release takes, by a snapshot as small as can be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from resolve_wish import wish

from launcher.load.snapshot import parse_snapshot
from launcher.model.problem import InputError
from launcher.model.profile import Engine, Setting
from launcher.model.snapshot import Option, Snapshot
from launcher.model.values import Json
from launcher.resolve.options import option_problems

SNAPSHOT = Snapshot(
    version="1.0",
    options={
        "seed": Option(default=0),
        "dtype": Option(choices=("auto", "float32")),
        "attention-backend": Option(choices=("FLASHMLA", "TRITON_MLA")),
        "enable-eplb": Option(switch=True),
        "headless": Option(switch=True, one_way=True),
        "disable-eplb": Option(switch=True, one_way=True, same_as="no-enable-eplb"),
        "api-key": Option(words="?"),
        "random-seed": Option(same_as="seed"),
        "eplb-config": Option(),
        "hf-overrides": Option(),
    },
    keys={
        "eplb-config": {
            "policy": Option(choices=("default",)),
            "use_async": Option(switch=True),
            "extra": Option(),
            "inner": Option(),
            "inner.size": Option(default=4),
        }
    },
)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = wish(tmp_path, "prefill: {}\ndecode: {}\nrouter: {}\n").profile.engine
    assert made
    return replace(made, snapshot=SNAPSHOT)


@pytest.mark.parametrize(
    ("name", "value", "what", "do"),
    [
        ("sed", "1", "vllm-0.32-cpu has no flag --sed", "did you mean `seed`?"),
        ("seed", True, "--seed is true, expected a value", "write the value"),
        ("random-seed", False, "--random-seed is false, expected a value", "write the value"),
        ("dtype", "flot32", "--dtype is 'flot32', which", "did you mean `float32`?"),
        ("attention-backend", "FLASHMLA_SPARSE", "--attention-backend is", "did you mean `FLASHMLA`?"),
        ("enable-eplb", "yes", "--enable-eplb is 'yes', expected true or false", "without quotes"),
        ("headless", False, "--headless cannot be false", "`headless: null`"),
        ("disable-eplb", False, "--disable-eplb cannot be false", "`disable-eplb: null`"),
        ("eplb-config", {"async": True}, "has no key async", "did you mean `use_async`?"),
        ("eplb-config.async", True, "has no key async", "did you mean `use_async`?"),
        ("eplb-config", {"policy": "best"}, "--eplb-config.policy is 'best'", "write one of them"),
        ("eplb-config", {"inner": {"siz": 1}}, "has no key inner.siz", "did you mean `inner.size`?"),
    ],
)
def test_what_is_refused(engine: Engine, name: str, value: Json, what: str, do: str) -> None:
    (problem,) = option_problems(name, Setting(value, "x.yaml:3"), engine)
    assert what in problem.what
    assert do in problem.do
    assert problem.where == "x.yaml:3"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seed", "7"),
        ("random-seed", "7"),
        ("dtype", "auto"),
        ("attention-backend", "flashmla"),
        ("enable-eplb", False),
        ("disable-eplb", True),
        ("api-key", True),
        ("eplb-config", {"policy": "default", "use_async": True, "extra": {"any": 1}, "inner": {"size": 2}}),
        ("eplb-config.inner.size", "2"),
        ("hf-overrides", {"anything": {"goes": True}}),
    ],
)
def test_what_is_taken(engine: Engine, name: str, value: Json) -> None:
    assert list(option_problems(name, Setting(value, "x.yaml:3"), engine)) == []


def test_without_a_snapshot_nothing_is_refused(engine: Engine) -> None:
    assert list(option_problems("sed", Setting("1", ""), replace(engine, snapshot=None))) == []


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": "1", "options": {"a": {"sort": 1}}, "keys": {}}']
)
def test_a_damaged_snapshot_is_told(text: str) -> None:
    with pytest.raises(InputError, match=r"x\.json: the snapshot cannot be read"):
        parse_snapshot(text, "x.json")
