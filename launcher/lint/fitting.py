"""Quantities of memory: what a launch takes of a GPU and what that leaves for KV, worked out by fit."""

from __future__ import annotations

import math
from dataclasses import replace

from launcher.fit import GIB, Budget, Edit, Shape, budget, nearest
from launcher.lint.reading import Quantity, Reading
from launcher.lint.values import Value, number, untold

LEAST_CONTEXT = 4096
"""Tokens of a request below which no shorter context is proposed."""
KV_BLOCK = 64
"""Tokens of a KV block where none is written: the page of the kernels for latent KV."""


def shape(r: Reading) -> Shape:
    """What decides a launch's memory. UntoldError where something of it is unknown."""
    if r.whole("pipeline_parallel") > 1:
        raise untold("how the layers are divided into pipeline stages")
    eplb = r.on("enable-eplb")
    given = number(r.setting("kv-cache-memory-bytes"))
    batched = r.whole("batched_tokens")
    return Shape(
        tensor_parallel=r.whole("tensor_parallel"),
        data_parallel=r.whole("data_parallel"),
        hosts=r.whole("hosts"),
        expert_parallel=bool(r.value("expert_parallel")),
        all2all=str(r.value("all2all")),
        redundant_experts=r.whole("redundant_experts"),
        eplb_window=r.size("eplb-config.window_size") or 0 if eplb else 0,
        kv_dtype=str(r.value("kv_dtype")),
        block_size=r.size("block-size") or KV_BLOCK,
        batched_tokens=batched,
        dispatch_tokens=r.whole("ll_tokens") or batched,
        expert_tokens=int(r.figure("expert-tokens-at-once") or 0),
        max_seqs=r.whole("max_seqs"),
        max_model_len=r.whole("max_context"),
        draft_tokens=r.whole("mtp_tokens") if r.value("spec_method") == "mtp" else 0,
        utilization=utilization(r),
        graphs=r.value("cudagraph_mode") != "NONE",
        graphs_counted=number(r.variable("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS")) == 1,
        dense_whole=r.behaviour("sequence-parallel-dense-mlp") == "whole",
        deepep_buffer_gib=(number(r.variable("VLLM_DEEPEP_BUFFER_SIZE_MB")) or 0) / 1024,
        kv_cache_gib=None if given is None else given / GIB,
    )


def memory(r: Reading) -> Budget | None:
    """A GPU's memory under this launch; None where there is no GPU. UntoldError where model, hardware or what
    decides it is unknown."""
    hardware = r.hardware()
    if not hardware.gpus_per_host:
        return None
    if hardware.overheads is None:
        raise untold(f"what a GPU of {hardware.name} needs beside what can be worked out")
    return budget(r.architecture(), hardware, shape(r))


def utilization(r: Reading) -> float:
    """The part of a GPU's memory that the engine takes: as written, else the release's default."""
    written = number(r.setting("gpu-memory-utilization"))
    if written is None:
        raise untold("the utilization of GPU memory")
    return written


def weights_gib(r: Reading) -> Value:
    """GiB of weights on each GPU."""
    made = memory(r)
    return round(made.weights_gib, 1) if made else None


def kv_gib(r: Reading) -> Value:
    """GiB left for KV on each GPU; below 0 where the rest is too large already."""
    made = memory(r)
    return round(made.kv_gib, 1) if made else None


def kv_tokens(r: Reading) -> Value:
    """Tokens of KV that one rank holds."""
    made = memory(r)
    return made.kv_tokens if made else None


def contexts_held(r: Reading) -> Value:
    """Requests of the longest context that one rank's KV holds."""
    made = memory(r)
    return round(made.kv_tokens / made.shape.max_model_len, 2) if made else None


def kv_lacks_gib(r: Reading) -> Value:
    """GiB of KV that one request of the longest context wants and does not get; below 0: that is to spare."""
    made = memory(r)
    if made is None:
        return None
    return round(made.shape.max_model_len * made.kv_bytes_per_token / GIB - made.kv_gib, 1)


def fits(r: Reading) -> Value:
    """Does the engine start, and hold one request of the longest context?"""
    made = memory(r)
    return made.fits if made else None


def misfit(r: Reading) -> Value:
    """Why it does not fit, in words; absent where it does."""
    made = memory(r)
    return "; ".join(made.reasons) or None if made else None


def what_fits(r: Reading) -> Value:
    """The nearest change after which it fits, with its figures, and the GPU that it fits as it is."""
    made = memory(r)
    if made is None or made.fits:
        return None
    most = number(r.default("gpu-memory-utilization")) or made.shape.utilization
    modest = replace(made.shape, utilization=min(made.shape.utilization, most))
    starts = (modest,) if budget(r.architecture(), r.hardware(), modest).fits else (made.shape, modest)
    near = next(filter(None, (_nearest(r, start, made.shape, most=most) for start in starts)), None)
    if near is None:
        return _larger_gpus(made) or "another layout: no smaller step, and no more hosts, make room"
    words, more_hosts = near
    larger = _larger_gpus(made) if more_hosts else ""
    return f"{words}; or {larger}" if larger else words


def _nearest(r: Reading, start: Shape, given: Shape, *, most: float) -> tuple[str, bool] | None:
    """The fewest changes from `start` on, as flags and with the figures after them, and whether hosts are
    among them; None where nothing helps. `most`: the highest utilization that is proposed."""
    context = min(start.max_model_len, max(LEAST_CONTEXT, start.max_model_len // 4))
    found = nearest(r.architecture(), r.hardware(), start, utilization=most, context=context)
    if found is None:
        return None
    edits, after = found
    words = [] if start == given else [f"--gpu-memory-utilization {start.utilization:g}"]
    words += [_in_words(edit, after.shape) for edit in edits]
    figures = f"{after.taken_gib:.1f} GiB then, and KV for {after.kv_tokens:,} tokens a rank"
    return f"{' and '.join(dict.fromkeys(words))} ({figures})", any(edit.knob == "hosts" for edit in edits)


def _in_words(edit: Edit, after: Shape) -> str:
    count = int(edit.after)
    match edit.knob:
        case "utilization":
            return f"--gpu-memory-utilization {edit.after:g}"
        case "dispatch_tokens" if after.dispatch_tokens != after.batched_tokens:
            return f"VLLM_MOE_DP_CHUNK_SIZE={count}"
        case "dispatch_tokens" | "batched_tokens":
            return f"--max-num-batched-tokens {count}"
        case "redundant_experts":
            return f"{count} redundant experts (--eplb-config)"
        case "draft_tokens":
            return "no --speculative-config"
        case "max_model_len":
            return f"--max-model-len {count}"
        case "tensor_parallel" | "hosts":
            size = f"TP {after.tensor_parallel} × DP {after.data_parallel}"
            hosts = "one host" if after.hosts == 1 else f"{after.hosts} hosts"
            return f"{size} on {hosts}, the experts spread over all {after.gpus} GPUs"


def _larger_gpus(made: Budget) -> str:
    """How much memory each GPU must have for the same launch."""
    if made.shape.kv_cache_gib is not None:
        return ""
    kv = made.shape.max_model_len * made.kv_bytes_per_token / GIB
    least = math.ceil((made.taken_gib + kv) / made.shape.utilization)
    return f"the same on GPUs of {least} GiB and more" if least > made.total_gib else ""


def context_held_twice(r: Reading) -> Value:
    """Tokens of which one rank's KV holds two requests."""
    made = memory(r)
    return made.kv_tokens // 2 // KV_BLOCK * KV_BLOCK if made else None


QUANTITIES: dict[str, Quantity] = {
    "weights_gib": weights_gib,
    "kv_gib": kv_gib,
    "kv_tokens": kv_tokens,
    "contexts_held": contexts_held,
    "kv_lacks_gib": kv_lacks_gib,
    "fits": fits,
    "misfit": misfit,
    "what_fits": what_fits,
    "context_held_twice": context_held_twice,
}
