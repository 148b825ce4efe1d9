"""A flag that is not in its release's snapshot fails, wherever one of our files writes it; pure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from releases import ENGINES, inventory, lines, snapshot
from samples import ROOT

from launcher.load import load
from launcher.model.problem import InputError
from launcher.resolve import resolve


def test_each_engine_has_one() -> None:
    assert {path.stem for path in (ROOT / "configs/engines").glob("*.json")} == set(ENGINES)


def test_every_flag_that_we_write_is_in_one(tmp_path: Path) -> None:
    for line in lines(tmp_path):
        known = snapshot(line.engine).options
        flags = {a.flag[2:] for a in line.process.arguments if a.flag}
        assert {f for f in flags if f not in known and f.removeprefix("no-") not in known} == set(), line.name


@pytest.mark.parametrize("flag", ["enable-eplb", "max-num-batched-tokens"])
def test_a_flag_less_and_a_layout_that_writes_it_is_refused(flag: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(inventory("current-2p1d", "current"))
    resolve(load(path))
    copy = tmp_path / "data/configs/engines"
    copy.mkdir(parents=True)
    told = json.loads((ROOT / "configs/engines/vllm-0.33.json").read_text())
    del told["options"][flag]
    (copy / "vllm-0.33.json").write_text(json.dumps(told))
    with pytest.raises(InputError, match=f"has no flag --{flag}"):
        resolve(load(path, data_dir=tmp_path / "data"))
