"""Quantities of attention: heads and what the kernel pads them to, its back end, the KV cache's format."""

from __future__ import annotations

import math

from launcher.lint.reading import Quantity, Reading
from launcher.lint.values import Value, number, untold


def sparse(r: Reading) -> Value:
    """Does attention select tokens (DSA)?"""
    return r.architecture().sparse


def heads(r: Reading) -> Value:
    """Attention heads of the model."""
    return r.architecture().heads


def heads_per_rank(r: Reading) -> Value:
    """Attention heads of one GPU."""
    return r.whole("heads") / r.whole("tensor_parallel")


def max_context(r: Reading) -> Value:
    """Tokens that one request may have: as written, else the model's."""
    return r.size("max-model-len") or r.architecture().max_context


def model_context(r: Reading) -> Value:
    """Tokens that the model itself was made for."""
    return r.architecture().max_context


def gpu_generation(r: Reading) -> Value:
    """First number of the compute capability, `9` is Hopper, `10` Blackwell; absent where there is no GPU."""
    return _generation(r) if r.hardware().gpus_per_host else None


def attention_backend(r: Reading) -> Value:
    """As written, else what the release ranks first for model, hardware and KV format; absent where the
    model's attention is dense, or there is no GPU."""
    written = r.setting("attention-backend") or r.setting("attention-config.backend")
    if written:
        return str(written).upper()
    if not r.value("sparse") or not r.hardware().gpus_per_host:
        return None
    name = f"sparse-attention-{_generation(r)}-{'fp8' if _quantized(r) else 'bfloat16'}"
    few = r.whole("heads_per_rank") <= (r.figure("few-heads") or 0)
    found = (r.behaviour(f"{name}-few-heads") if few else None) or r.behaviour(name)
    if found is None:
        raise untold(f"the attention back end of {r.hardware().gpu}")
    return found


def kv_dtype(r: Reading) -> Value:
    """How a token lies in the KV cache: `bfloat16`, `fp8`, or DeepSeek's own `fp8_ds_mla` with its scales."""
    written = str(r.setting("kv-cache-dtype") or "auto")
    if written == "auto":
        return (r.behaviour("sparse-kv-auto") if r.value("sparse") else None) or "bfloat16"
    if not written.startswith("fp8"):
        return written
    backends = r.words("backends-of-fp8-ds-mla")
    if written != "fp8_ds_mla" and r.value("attention_backend") in backends:
        return "fp8_ds_mla"
    return "fp8" if written.startswith("fp8_e") else written


def head_multiple(r: Reading) -> Value:
    """The kernel wants a multiple of so many heads a GPU, and pads to it; 1 where it takes any."""
    backend = r.value("attention_backend")
    if backend is None:
        return 1
    by_generation = r.figure(f"head-multiple-{backend}-{_generation(r)}")
    return int(by_generation or r.figure(f"head-multiple-{backend}") or 1)


def padded_heads(r: Reading) -> Value:
    """Heads of one GPU that the kernel computes."""
    multiple = r.whole("head_multiple")
    return math.ceil((number(r.value("heads_per_rank")) or 0) / multiple) * multiple


def _quantized(r: Reading) -> bool:
    return str(r.setting("kv-cache-dtype")).startswith("fp8")


def _generation(r: Reading) -> str:
    capability = r.hardware().capability
    if not capability:
        raise untold(f"the compute capability of {r.hardware().name}")
    return capability.partition(".")[0]


QUANTITIES: dict[str, Quantity] = {
    "sparse": sparse,
    "heads": heads,
    "heads_per_rank": heads_per_rank,
    "max_context": max_context,
    "model_context": model_context,
    "gpu_generation": gpu_generation,
    "attention_backend": attention_backend,
    "kv_dtype": kv_dtype,
    "head_multiple": head_multiple,
    "padded_heads": padded_heads,
}
