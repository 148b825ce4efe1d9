"""The tiny model's files are what a real model's are: whole, consistent, the same for one seed."""

from __future__ import annotations

import json
import shutil
import struct
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from launcher.flows.weights import write_manifest
from launcher.load.choice import Choice, read
from launcher.load.data import Data, shipped
from launcher.load.model_config import NAMES, as_config, read_model_config
from launcher.model.problem import InputError
from launcher.model.profile import Model
from launcher.sandbox import tiny_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("model")
    tiny_model.make(made)
    return made


def read_shard(path: Path) -> tuple[dict[str, Any], bytes]:
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    header.pop("__metadata__")
    return header, raw[8 + length :]


def shards(folder: Path) -> dict[str, tuple[dict[str, Any], bytes]]:
    return {path.name: read_shard(path) for path in sorted(folder.glob("*.safetensors"))}


def test_one_seed_one_model(folder: Path, tmp_path: Path) -> None:
    tiny_model.make(tmp_path)
    names = sorted(p.name for p in folder.iterdir())
    assert names == sorted(p.name for p in tmp_path.iterdir())
    assert all((folder / n).read_bytes() == (tmp_path / n).read_bytes() for n in names)
    tiny_model.make(tmp_path, seed=1)
    shard = "model-00001-of-00002.safetensors"
    assert (folder / shard).read_bytes() != (tmp_path / shard).read_bytes()


def test_tensors_fill_their_files_and_the_index_finds_each(folder: Path) -> None:
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    found = shards(folder)
    assert len(found) == 2
    width = {"BF16": 2, "F32": 4}
    for header, body in found.values():
        end = 0
        for tensor in header.values():
            count = 1
            for length in tensor["shape"]:
                count *= length
            assert tensor["data_offsets"] == [end, end + count * width[tensor["dtype"]]]
            end = tensor["data_offsets"][1]
        assert end == len(body)
    assert index["weight_map"] == {t: name for name, (header, _) in found.items() for t in header}
    assert index["metadata"]["total_size"] == sum(len(body) for _, body in found.values())


def test_the_tokenizer_has_a_token_for_each_byte_and_no_more_than_the_model(folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    config = json.loads((folder / "config.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    assert sorted(vocabulary.values()) == list(range(config["vocab_size"]))
    assert len(vocabulary) == 256 + len(tokenizer["added_tokens"])
    assert {t["id"] for t in tokenizer["added_tokens"]} == {
        config[f"{name}_token_id"] for name in ("pad", "bos", "eos")
    }
    assert vocabulary["A"] == ord("A")
    assert vocabulary["Ġ"] == ord(" ")


def test_only_printable_bytes_can_win(folder: Path) -> None:
    header, body = shards(folder)["model-00002-of-00002.safetensors"]
    first, last = header["lm_head.weight"]["data_offsets"]
    rows, columns = header["lm_head.weight"]["shape"]
    data = body[first:last]
    silent = {r for r in range(rows) if not any(data[r * columns * 2 : (r + 1) * columns * 2])}
    assert silent == set(range(rows)) - set(range(32, 127))


def test_manifest_names_every_file_and_refuses_what_is_no_model(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "leftover").write_text("x")
    written = write_manifest(tmp_path, lambda event: None)
    files = json.loads(written.path.read_text())["files"]
    assert set(files) == {p.name for p in folder.iterdir()}
    assert all(files[n]["size"] == (tmp_path / n).stat().st_size for n in files)
    assert write_manifest(tmp_path, lambda event: None).revision == written.revision
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError) as refused:
        write_manifest(tmp_path, lambda event: None)
    assert [p.what for p in refused.value.problems] == [
        "no config.json that is a JSON object: this is no model folder",
        "model-00002-of-00002.safetensors is missing, which model.safetensors.index.json names",
    ]


def test_what_is_known_of_the_tiny_model_is_what_is_written() -> None:
    known = read(Model, Choice("tiny", "here"), Data((shipped(),))).architecture
    assert known is not None
    assert asdict(known) == {ours: tiny_model.CONFIG[theirs] for ours, theirs in NAMES.items()} | {
        "index_heads": 0,
        "index_dim": 0,
        "index_topk": 0,
        "fp8": False,
    }


@pytest.mark.parametrize("name", ["tiny", "deepseek-v3.2", "deepseek-r1"])
def test_a_model_without_weights_has_the_dimensions_it_was_described_by(name: str, tmp_path: Path) -> None:
    data = Data((shipped(),))
    known = read(Model, Choice(name, "here"), data).architecture
    assert known is not None
    tiny_model.describe(tmp_path, as_config(known))
    bytes_alone = replace(known, vocabulary=tiny_model.VOCABULARY)
    assert read_model_config(tmp_path / "config.json", data) == bytes_alone
    assert set(json.loads(write_manifest(tmp_path, lambda event: None).path.read_text())["files"]) == {
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }
