"""Bytes of KV cache for each token; knows nothing of what else a GPU holds."""

from __future__ import annotations

from launcher.fit.weights import BF16, FP32
from launcher.model.architecture import Architecture

LATENT_GROUP = 128
"""Latent values that share a float32 scale in fp8_ds_mla."""


def kv_bytes_per_token(architecture: Architecture, kv_dtype: str, *, layers: int) -> int:
    """Of one rank; the same on each of its GPUs, since latent KV has no heads to divide.

    `kv_dtype` is resolved: `bfloat16`, `fp8` or `fp8_ds_mla`.
    """
    return layers * (_latent_bytes(architecture, kv_dtype) + _index_bytes(architecture))


def _latent_bytes(a: Architecture, kv_dtype: str) -> int:
    """fp8_ds_mla, which DSA's FP8 always is: FP8 with scales, and the rotary part in BF16."""
    if not kv_dtype.startswith("fp8"):
        return (a.kv_lora + a.rope_head) * BF16
    if a.sparse:
        return a.kv_lora + a.kv_lora // LATENT_GROUP * FP32 + a.rope_head * BF16
    return a.kv_lora + a.rope_head


def _index_bytes(a: Architecture) -> int:
    """The indexer's key: FP8 with one scale."""
    return a.index_dim + FP32 if a.sparse else 0
