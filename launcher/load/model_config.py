"""A model's own config.json → Architecture; knows the names that Hugging Face gives its fields."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from launcher.load.data import Data
from launcher.load.document import Location
from launcher.load.schema import fill
from launcher.model.architecture import ALIKE, Architecture
from launcher.model.problem import InputError, Problem
from launcher.model.values import Json

NAMES: Mapping[str, str] = {
    "layers": "num_hidden_layers",
    "dense_layers": "first_k_dense_replace",
    "mtp_layers": "num_nextn_predict_layers",
    "hidden": "hidden_size",
    "vocabulary": "vocab_size",
    "heads": "num_attention_heads",
    "q_lora": "q_lora_rank",
    "kv_lora": "kv_lora_rank",
    "nope_head": "qk_nope_head_dim",
    "rope_head": "qk_rope_head_dim",
    "value_head": "v_head_dim",
    "dense_ffn": "intermediate_size",
    "expert_ffn": "moe_intermediate_size",
    "experts": "n_routed_experts",
    "shared_experts": "n_shared_experts",
    "experts_per_token": "num_experts_per_tok",
    "expert_groups": "n_group",
    "max_context": "max_position_embeddings",
}
SPARSE_NAMES: Mapping[str, str] = {
    "index_heads": "index_n_heads",
    "index_dim": "index_head_dim",
    "index_topk": "index_topk",
}
"""Fields that only models with DSA have."""


def as_config(shape: Architecture) -> Mapping[str, Json]:
    """The fields of a config.json that say these dimensions, for an engine that makes weights up."""
    names = {**NAMES, **(SPARSE_NAMES if shape.sparse else {})}
    config: dict[str, Json] = {theirs: getattr(shape, ours) for ours, theirs in names.items()}
    config["architectures"] = ["DeepseekV32ForCausalLM" if shape.sparse else "DeepseekV3ForCausalLM"]
    config["num_key_value_heads"] = shape.heads
    config["topk_group"] = max(1, shape.expert_groups // 2)
    if shape.fp8:
        config["quantization_config"] = {
            "quant_method": "fp8",
            "activation_scheme": "dynamic",
            "fmt": "e4m3",
            "scale_fmt": "ue8m0",
            "weight_block_size": [128, 128],
        }
    return {**ALIKE, **config}


def read_model_config(path: Path, data: Data) -> Architecture:
    """The dimensions of a DeepSeek-V3-shaped model. InputError for any other, naming what it lacks."""
    shown, text = data.shown(path), data.text(path)
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(f"this is no JSON: {error}", where=shown, do="name a config.json")) from None
    if not isinstance(config, dict) or (missing := [n for n in NAMES.values() if n not in config]):
        lacks = ", ".join(missing) if isinstance(config, dict) else "all of its fields"
        what = f"this is no DeepSeek-V3-shaped model: {lacks} missing"
        raise InputError(Problem(what, where=shown, do="name the config.json of such a model"))
    names = {**NAMES, **{ours: theirs for ours, theirs in SPARSE_NAMES.items() if theirs in config}}
    values = {ours: str(config[theirs]) for ours, theirs in names.items()}
    quantized = config.get("quantization_config")
    given = {"fp8": isinstance(quantized, dict) and quantized.get("quant_method") == "fp8"}

    def place(location: Location) -> str:
        before = text.partition(f'"{names[str(location[0])]}"')[0] if location else ""
        return f"{shown}:{before.count(chr(10)) + 1}"

    made = fill(Architecture, values, place=place, given=given)
    if made.dense_layers > made.layers:
        what = f"the first {made.dense_layers} layers are dense, of {made.layers} in all"
        raise InputError(
            Problem(what, where=place(("dense_layers",)), do="name a config.json of a real model")
        )
    return made
