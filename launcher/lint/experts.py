"""Quantities of experts: how they are spread, copied, and reached."""

from __future__ import annotations

from launcher.fit.buffers import low_latency_bytes
from launcher.fit.line import GIB
from launcher.lint.reading import Quantity, Reading
from launcher.lint.values import Value, number, shown
from launcher.model.history import gone_in


def expert_parallel(r: Reading) -> Value:
    """Are whole experts spread over GPUs?"""
    return r.on("enable-expert-parallel")


def ep_size(r: Reading) -> Value:
    """GPUs that the experts of a layer are spread over: TP × DP, or 1 where they are not."""
    if not r.value("expert_parallel"):
        return 1
    return r.whole("tensor_parallel") * r.whole("data_parallel")


def all2all(r: Reading) -> Value:
    """The back end that really runs: one that the release has no more is replaced by its default."""
    written = r.setting("all2all-backend")
    entry = r.knowledge.history.settings.get("all2all-backend")
    if entry and r.version and gone_in(entry, shown(written), r.version):
        return r.behaviour("all2all-fallback")
    return written


def experts(r: Reading) -> Value:
    """Routed experts of an MoE layer."""
    return r.architecture().experts


def redundant_experts(r: Reading) -> Value:
    """Copies of experts, over all GPUs; 0 without EPLB."""
    if not r.on("enable-eplb"):
        return 0
    return r.size("eplb-config.num_redundant_experts") or 0


def expert_slots(r: Reading) -> Value:
    """Places for experts of a layer, over all GPUs."""
    return r.whole("experts") + r.whole("redundant_experts")


def slots_per_rank(r: Reading) -> Value:
    """Places for experts on one GPU; a fraction where they do not divide."""
    return r.whole("expert_slots") / r.whole("ep_size")


def redundant_per_rank(r: Reading) -> Value:
    """Copies of experts on one GPU; a fraction where they do not divide."""
    return r.whole("redundant_experts") / r.whole("ep_size")


def low_latency(r: Reading) -> Value:
    """Does the back end exchange fixed-size buffers, made for the largest batch there can be?"""
    if not r.value("expert_parallel") or r.whole("data_parallel") == 1:
        return False
    return str(r.value("all2all")) in r.words("low-latency-backends")


def ll_tokens(r: Reading) -> Value:
    """Tokens of a rank that the low-latency buffer is made for; absent without one."""
    if not r.value("low_latency"):
        return None
    if r.behaviour("low-latency-buffer") == "chunk":
        chunk = number(r.variable("VLLM_MOE_DP_CHUNK_SIZE"))
        return int(chunk) if chunk is not None else None
    return r.value("batched_tokens")


def ll_buffer_gib(r: Reading) -> Value:
    """GiB that DeepEP's low-latency buffer takes on each GPU; absent without one."""
    tokens = number(r.value("ll_tokens"))
    if tokens is None:
        return None
    size = low_latency_bytes(r.architecture(), experts=r.whole("expert_slots"), tokens=int(tokens))
    return round(size / GIB, 2)


QUANTITIES: dict[str, Quantity] = {
    "expert_parallel": expert_parallel,
    "ep_size": ep_size,
    "all2all": all2all,
    "experts": experts,
    "redundant_experts": redundant_experts,
    "expert_slots": expert_slots,
    "slots_per_rank": slots_per_rank,
    "redundant_per_rank": redundant_per_rank,
    "low_latency": low_latency,
    "ll_tokens": ll_tokens,
    "ll_buffer_gib": ll_buffer_gib,
}
