"""Architecture: the dimensions of a model that decide memory and speed; knows no weights and no engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from launcher.model.values import Json

ALIKE: Mapping[str, Json] = {
    "model_type": "deepseek_v3",
    "torch_dtype": "bfloat16",
    "scoring_func": "sigmoid",
    "topk_method": "noaux_tc",
    "norm_topk_prob": True,
    "routed_scaling_factor": 2.5,
    "moe_layer_freq": 1,
    "rope_theta": 10000.0,
    "rms_norm_eps": 1e-06,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "tie_word_embeddings": False,
    "use_cache": True,
}
"""Fields of config.json that all models of this shape have alike: deepseek-ai/DeepSeek-V3.2."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """Dimensions of a DeepSeek-V3-shaped model (MLA, MoE; DSA where `index_heads` is above 0)."""

    layers: Annotated[int, Ge(1)]
    """Without the MTP layers."""
    dense_layers: Annotated[int, Ge(0)]
    """The first layers, whose MLP is dense."""
    mtp_layers: Annotated[int, Ge(0)]
    hidden: Annotated[int, Ge(1)]
    vocabulary: Annotated[int, Ge(1)]
    heads: Annotated[int, Ge(1)]
    q_lora: Annotated[int, Ge(1)]
    kv_lora: Annotated[int, Ge(1)]
    nope_head: Annotated[int, Ge(1)]
    """Dimensions of a head without rotary embedding (qk_nope)."""
    rope_head: Annotated[int, Ge(1)]
    value_head: Annotated[int, Ge(1)]
    dense_ffn: Annotated[int, Ge(1)]
    expert_ffn: Annotated[int, Ge(1)]
    experts: Annotated[int, Ge(1)]
    """Routed experts of an MoE layer."""
    shared_experts: Annotated[int, Ge(0)]
    experts_per_token: Annotated[int, Ge(1)]
    expert_groups: Annotated[int, Ge(1)]
    max_context: Annotated[int, Ge(1)]
    """Tokens (max_position_embeddings)."""
    index_heads: Annotated[int, Ge(0)] = 0
    """Heads of the DSA indexer; 0: plain MLA."""
    index_dim: Annotated[int, Ge(0)] = 0
    index_topk: Annotated[int, Ge(0)] = 0
    """Tokens that a query attends to; 0: all."""
    fp8: bool = True
    """Linear layers are FP8 with 128 × 128 block scales; else BF16."""

    @property
    def sparse(self) -> bool:
        """Does attention select tokens (DSA)?"""
        return self.index_heads > 0
