"""GPU time of a prompt token, throughput and time to first token of a prefill instance; knows no decode."""

from __future__ import annotations

from launcher.model.architecture import Architecture
from launcher.model.performance import Performance
from launcher.predict.group import GPUS_PER_HOST, Group, Part, total

ALL_REDUCES_PER_LAYER = 2
"""After attention and after the MLP."""
ACTIVATION_BYTES = 2
"""BF16."""


def token_cost(group: Group, model: Architecture, speed: Performance, *, prompt: int) -> tuple[Part, ...]:
    """GPU microseconds that a token of a prompt of so many takes, on average, summed over the GPUs of its
    tensor-parallel group."""
    heads = model.heads / group.tensor_parallel
    padding = max(1.0, group.head_multiple / heads)
    local, inside, between = _all_reduce_us(group, model, speed)
    links = (inside + between) * group.tensor_parallel
    return (
        Part("layers", speed.prefill_us, f"{speed.prefill_us} µs a token, attention and links apart"),
        Part(
            "attention",
            speed.attention_us * padding,
            f"{speed.attention_us} µs × {padding:g} ({heads:g} heads a GPU, computed as {heads * padding:g})",
        ),
        *_context(group, model, speed, prompt=prompt, padding=padding),
        Part(
            "links",
            links,
            f"{ALL_REDUCES_PER_LAYER} all-reduces × {model.layers} layers × {group.tensor_parallel} GPUs: "
            f"{inside:.2f} µs over NVLink among {local}, {between:.2f} µs over the network",
        ),
    )


def _context(
    group: Group, model: Architecture, speed: Performance, *, prompt: int, padding: float
) -> tuple[Part, ...]:
    """What the tokens before it cost, against the prompts that the other constants were fitted on."""
    more = (prompt - speed.prompt_tokens) / 2 / 1000
    if not more:
        return ()
    if model.sparse:
        one, times, what = speed.sparse_context_us, float(group.tensor_parallel), "GPUs, an indexer each"
    else:
        one, times, what = speed.dense_context_us, padding, "heads computed for one"
    formula = f"{one} µs × {more:+g} thousand tokens before it × {model.layers} layers × {times:g} {what}"
    return (Part("context", one * more * model.layers * times, formula),)


def _all_reduce_us(group: Group, model: Architecture, speed: Performance) -> tuple[int, float, float]:
    """GPUs of a tensor-parallel group on one host, and microseconds of all its all-reduces for a token.

    A ring moves 2 (n - 1) / n of the data over each link; over hosts each GPU does so with its share.
    """
    local = min(group.tensor_parallel, GPUS_PER_HOST)
    hosts = group.tensor_parallel // local
    megabytes = model.hidden * ACTIVATION_BYTES * ALL_REDUCES_PER_LAYER * model.layers / 1e6
    inside = 2 * (local - 1) / local * megabytes / speed.nvlink_gb_per_s * 1e3
    between = 2 * (hosts - 1) / hosts * megabytes / local / speed.network_gb_per_s * 1e3
    return local, inside, between


def tokens_per_s(group: Group, model: Architecture, speed: Performance, *, prompt: int) -> float:
    """Tokens a second of prompts of so many, of the whole instance, when it always has work."""
    return group.gpus / total(token_cost(group, model, speed, prompt=prompt)) * 1e6


def rank_s(group: Group, model: Architecture, speed: Performance, *, tokens: int, prompt: int) -> float:
    """Seconds of so many tokens of such prompts on one data-parallel rank, which they have for themselves."""
    return tokens * group.data_parallel / tokens_per_s(group, model, speed, prompt=prompt)
