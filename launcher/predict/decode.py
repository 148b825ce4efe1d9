"""Time of a decode step and time per output token of a decode instance; knows no prefill."""

from __future__ import annotations

import math

from launcher.model.architecture import Architecture
from launcher.model.performance import Performance
from launcher.predict.group import Group, Part, total

INDEX_BYTES = 132
"""Of one token in one layer of the indexer: 128 in FP8 and a scale."""


def step(
    group: Group, model: Architecture, speed: Performance, *, requests: float, context: float
) -> tuple[Part, ...]:
    """Milliseconds of one step of a rank that holds `requests`, each of `context` tokens so far."""
    tokens = requests * (1 + group.draft_tokens)
    return (
        Part("fixed", speed.step_ms, f"{speed.step_ms} ms: kernels and scheduling of all layers"),
        *_sparse(model, speed),
        _weights(group, model, speed),
        _experts(group, model, speed, tokens=tokens),
        Part("requests", speed.request_ms * tokens, f"{speed.request_ms} ms × {tokens:.4g} tokens"),
        _context(group, model, speed, requests=requests, context=context),
        *_exchange(group, model, speed),
    )


def _sparse(model: Architecture, speed: Performance) -> tuple[Part, ...]:
    if not model.sparse:
        return ()
    amount = speed.sparse_layer_ms * model.layers
    return (Part("sparse attention", amount, f"{speed.sparse_layer_ms} ms × {model.layers} layers"),)


def _read(name: str, size: float, speed: Performance, what: str) -> Part:
    formula = f"{what}: {size / 1e9:.2f} GB at {speed.memory_gb_per_s:g} GB/s"
    return Part(name, size / speed.memory_gb_per_s / 1e6, formula)


def _weights(group: Group, model: Architecture, speed: Performance) -> Part:
    """All but routed experts, read once a step; FP8 is a byte a weight, embeddings are BF16."""
    head = model.nope_head + model.rope_head
    split = model.q_lora * model.heads * head
    split += model.kv_lora * model.heads * (model.nope_head + model.value_head)
    split += model.heads * model.value_head * model.hidden
    whole = model.hidden * (model.q_lora + model.kv_lora + model.rope_head)
    shared = 3 * model.hidden * model.expert_ffn * model.shared_experts * (model.layers - model.dense_layers)
    dense = 3 * model.hidden * model.dense_ffn * model.dense_layers / group.tensor_parallel
    head_bytes = 2 * model.vocabulary * model.hidden / group.tensor_parallel
    if group.data_parallel == 1:
        shared = shared // group.tensor_parallel
    size = (split / group.tensor_parallel + whole) * model.layers + shared + dense + head_bytes
    return _read("weights", size, speed, "attention, shared and dense layers, head")


def _experts(group: Group, model: Architecture, speed: Performance, *, tokens: float) -> Part:
    """Routed experts that at least one token of the group goes to, of those on this GPU."""
    batch = tokens * group.data_parallel
    hit = 1 - math.pow(1 - model.experts_per_token / model.experts, batch)
    layers = model.layers - model.dense_layers
    one = 3 * model.hidden * model.expert_ffn
    what = f"{hit:.0%} of {group.experts_on_gpu:g} experts × {layers} layers, for {batch:.4g} tokens"
    return _read("experts", group.experts_on_gpu * hit * one * layers, speed, what)


def _context(
    group: Group, model: Architecture, speed: Performance, *, requests: float, context: float
) -> Part:
    """The KV cache that attention reads: all of it, or the selected tokens and the indexer's keys of all."""
    read = min(context, model.index_topk) if model.sparse else context
    index = INDEX_BYTES * context if model.sparse else 0
    size = model.layers * (group.kv_bytes * read + index) * requests
    return _read("context", size, speed, f"KV of {requests:.4g} requests at {context:.0f} tokens")


def _exchange(group: Group, model: Architecture, speed: Performance) -> tuple[Part, ...]:
    if not group.low_latency or group.data_parallel == 1:
        return ()
    # between measured sizes, the next larger: the time grows slowly
    size = min((s for s in speed.exchange_us if s >= group.gpus), default=max(speed.exchange_us))
    layers = model.layers - model.dense_layers
    amount = speed.exchange_us[size] * layers / 1e3
    return (Part("all-to-all", amount, f"{speed.exchange_us[size]:g} µs (EP{size}) × {layers} layers"),)


def tokens_of_a_step(group: Group, speed: Performance) -> float:
    """Output tokens of one request: one, and the drafts that are kept up to the first that is not."""
    return sum(speed.acceptance**n for n in range(group.draft_tokens + 1))


def tpot_ms(
    group: Group, model: Architecture, speed: Performance, *, requests: float, context: float
) -> float:
    """Milliseconds per output token of each request."""
    whole = total(step(group, model, speed, requests=requests, context=context))
    return whole / tokens_of_a_step(group, speed)
