"""fit over layouts and inventories as they are: words, exit code, proposals that can be written down."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from samples import sample
from typer.testing import CliRunner

from launcher.cli.app import app
from launcher.flows import fit as flow
from launcher.flows.alone import Names, wanted_of_layout
from launcher.load.choice import Choice, read
from launcher.load.data import Data, shipped
from launcher.load.model_config import read_model_config
from launcher.model.problem import InputError
from launcher.model.profile import Model
from launcher.resolve import resolve
from launcher.sandbox.tiny_model import CONFIG

DATA = Data((shipped(),))
KNOWN = flow.read_engines(DATA)
LOAD = flow.Load(prompt=4096, answer=1024)
V32: dict[str, Any] = {"stack": "current", "hardware": "h200", "model": "deepseek-v3.2"}


@pytest.mark.parametrize("name", ["prod-2p1d", "prod-2p1d-current", "prod-min"])
def test_what_we_ship_for_production_fits(name: str, tmp_path: Path) -> None:
    rows = flow.fit(resolve(sample(name, tmp_path)), KNOWN, LOAD, name=name)
    assert [row.pool for row in rows] == ["prefill", "decode"]
    assert all(row.fits and not row.edits for row in rows)
    assert all(row.requests > 0 for row in rows)


def test_settings_of_a_release_decide(tmp_path: Path) -> None:
    """The low-latency buffer is a chunk of 256 tokens on 0.14, and the whole step on 0.33."""
    buffers = {}
    for name in ("prod-2p1d", "prod-2p1d-current"):
        decode = flow.fit(resolve(sample(name, tmp_path)), KNOWN, LOAD, name=name)[1].budget
        buffers[name] = next(x.size_gib for x in decode.lines if x.name == "low-latency RDMA buffer")
        assert decode.shape.dispatch_tokens == (256 if name == "prod-2p1d" else decode.shape.batched_tokens)
    assert buffers["prod-2p1d-current"] == pytest.approx(2 * buffers["prod-2p1d"])


def overlay(folder: Path, old: str, new: str) -> Path:
    """A data folder whose current-2p1d has one line changed."""
    text = (shipped() / "configs/layouts/current-2p1d.yaml").read_text()
    assert old in text
    (folder / "configs/layouts").mkdir(parents=True)
    (folder / "configs/layouts/current-2p1d.yaml").write_text(text.replace(old, new))
    return folder


def test_a_layout_that_does_not_fit_says_what_to_write_and_then_fits(tmp_path: Path) -> None:
    folder = overlay(tmp_path, "max-num-batched-tokens: 512", "max-num-batched-tokens: 8192")
    words = ["fit", "--layout", "current-2p1d", "--data-dir", str(folder)]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 2
    proposed = re.search(r"settings: \{decode: \{max-num-batched-tokens: (\d+)\}\}", told.output)
    assert proposed
    after = overlay(
        tmp_path / "after", "max-num-batched-tokens: 512", f"max-num-batched-tokens: {proposed[1]}"
    )
    assert CliRunner().invoke(app, [*words[:-1], str(after)]).exit_code == 0


def test_every_figure_has_a_formula_and_a_source() -> None:
    told = CliRunner().invoke(app, ["fit", "--layout", "current-2p1d", "--explain"])
    rows = flow.fit(wanted_of_layout(Names("current-2p1d", **V32), DATA), KNOWN, LOAD, name="current-2p1d")
    assert told.exit_code == 0
    for line in (line for row in rows for line in row.budget.lines):
        assert line.formula
        assert line.source
        assert re.search(
            rf"{line.size_gib:.2f}  {re.escape(line.name)} +{re.escape(line.formula)}", told.output
        )


def test_json_has_each_row_whole() -> None:
    told = CliRunner().invoke(app, ["fit", "--layout", "min-1p1d", "--isl", "1000", "--osl", "24", "--json"])
    document = json.loads(told.stdout)
    assert document["load"] == {"prompt": 1000, "answer": 24}
    decode = document["rows"][1]
    each = min(decode["kv_tokens_per_rank"] // 64 - 1, 64 * 16) // 16
    assert decode["requests"] == min(each, decode["shape"]["max_seqs"]) * decode["shape"]["data_parallel"]
    assert sum(line["size_gib"] for line in decode["lines"]) + decode["kv_gib"] == pytest.approx(
        decode["allowed_gib"]
    )


def test_all_compares_layouts_and_a_grid_what_fits_first() -> None:
    rows, left_out = flow.compare(Names("current-2p1d", **V32), DATA, KNOWN, LOAD, gpus=16)
    by_pool = {pool: [row for row in rows if row.pool == pool] for pool in ("prefill", "decode")}
    for pool_rows in by_pool.values():
        assert [row.fits for row in pool_rows] == sorted((row.fits for row in pool_rows), reverse=True)
        held = [row.requests for row in pool_rows if row.fits]
        assert held == sorted(held, reverse=True)
        assert all(row.instances * row.budget.shape.gpus <= 16 for row in pool_rows)
    # one host at TP1 has no room with copies and drafts; a public report says so too (LMCache PR 2521)
    alone = [
        r
        for r in rows
        if r.name == "grid" and (r.budget.shape.gpus, r.budget.shape.tensor_parallel) == (8, 1)
    ]
    assert alone
    assert not any(row.fits for row in alone)
    assert any("article-prefill-4host" in problem.what for problem in left_out), "it needs 32 GPUs"


@pytest.mark.parametrize("fp8", [False, True])
def test_a_config_json_gives_the_dimensions(fp8: bool, tmp_path: Path) -> None:
    """The sandbox's model, whose file we write ourselves, is what configs/models says of it."""
    config = {**CONFIG, "quantization_config": {"quant_method": "fp8"}} if fp8 else CONFIG
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    known = read(Model, Choice("tiny", ""), DATA).architecture
    assert known is not None
    assert read_model_config(path, DATA) == replace(known, fp8=fp8)


def test_another_model_is_refused_by_what_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"hidden_size": 4096}')
    told = CliRunner().invoke(app, ["fit", "--layout", "min-1p1d", "--model-config", str(path)])
    assert "kv_lora_rank" in str(told.exception)
    path.write_text(
        json.dumps({**CONFIG, "quantization_config": ["fp8"], "num_attention_heads": 0}, indent=0)
    )
    line = 1 + path.read_text().splitlines().index('"num_attention_heads": 0,')
    with pytest.raises(InputError) as refused:
        read_model_config(path, DATA)
    assert [p.where for p in refused.value.problems] == [f"{path}:{line}"]
    path.write_text(json.dumps({**CONFIG, "first_k_dense_replace": 99}))
    with pytest.raises(InputError, match="the first 99 layers are dense"):
        read_model_config(path, DATA)


@pytest.mark.parametrize("words", [("--layout", "sandbox-1p1d", "--model", "tiny"), ("--all",)])
def test_hardware_without_gpus_is_refused(words: tuple[str, ...]) -> None:
    told = CliRunner().invoke(app, ["fit", "--hardware", "cpu", *words])
    assert "no GPU memory" in str(told.exception)


@pytest.mark.parametrize("command", ["fit", "predict"])
@pytest.mark.parametrize(
    "words", [("--hardware", "b200", "a.yaml"), ("--model", "tiny"), ("--layout", "min-1p1d", "a.yaml")]
)
def test_options_that_an_inventory_answers_are_refused(command: str, words: tuple[str, ...]) -> None:
    told = CliRunner().invoke(app, [command, *words])
    assert isinstance(told.exception, InputError)
    assert [p.where for p in told.exception.problems] == [words[0]]
