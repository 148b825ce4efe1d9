"""Performance, Point: what a model's speed on a GPU is computed from, and what was published of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Gt, Le

from launcher.model.sla import Statistic

Positive: TypeAlias = Annotated[float, Gt(0)]


@dataclass(frozen=True, slots=True)
class Performance:
    """configs/performance/<hardware>.yaml: one GPU type, its links, and constants fitted on points."""

    name: str
    about: str
    layers: Annotated[int, Ge(1)]
    hidden: Annotated[int, Ge(1)]
    """Of the models that the constants were fitted on; they say nothing of others."""
    memory_gb_per_s: Positive
    """HBM of one GPU."""
    nvlink_gb_per_s: Positive
    """One GPU to the others of its host, one direction."""
    network_gb_per_s: Positive
    """One GPU's own NIC, one direction."""
    prefill_us: Positive
    """GPU microseconds for one prompt token of the whole model, attention and links apart."""
    attention_us: Positive
    """GPU microseconds for one prompt token in attention, heads not padded."""
    prompt_tokens: Annotated[int, Ge(1)]
    """Of the prompts that both were fitted on: half of them are before a token, on average."""
    sparse_context_us: Positive
    """What 1,000 more tokens before it add to a prompt token in a layer of DSA: its indexer, on each GPU."""
    dense_context_us: Positive
    """The same in MLA, which looks at all of them; heads are divided among the GPUs."""
    step_ms: Positive
    """A decode step's fixed part: kernels and scheduling of all layers."""
    request_ms: Positive
    """What each request of a rank adds to its step, memory reads apart."""
    sparse_layer_ms: Positive
    """What sparse attention (DSA) adds to a decode step in each layer, against MLA."""
    exchange_us: Mapping[int, Positive]
    """Expert-parallel size → dispatch and combine of one MoE layer in a decode step, microseconds."""
    acceptance: Annotated[float, Ge(0), Le(1)] = 0.0
    """Share of MTP's draft tokens that the model keeps."""
    source: str = ""


Measure: TypeAlias = Literal["tokens_per_s", "ttft_ms", "tpot_ms"]
"""Prompt and output tokens a second together; mean time to first token; mean time per output token."""


@dataclass(frozen=True, slots=True)
class Point:
    """One published measurement, and the shape and load it was made with."""

    about: str
    model: str
    hardware: str
    engine: str
    tensor_parallel: Annotated[int, Ge(1)]
    data_parallel: Annotated[int, Ge(1)]
    hosts: Annotated[int, Ge(1)]
    """Of each instance."""
    input_tokens: Annotated[int, Ge(1)]
    output_tokens: Annotated[int, Ge(1)]
    concurrency: Annotated[int, Ge(1)]
    measured: Mapping[Measure, Positive]
    known_from: str
    prefill_instances: Annotated[int, Ge(0)] = 0
    decode_instances: Annotated[int, Ge(0)] = 0
    """Of the same shape; a decode alone holds all requests."""
    low_latency: bool = False
    """Do experts get their tokens by low-latency kernels in decode?"""
    head_multiple: Annotated[int, Ge(1)] = 1
    """Heads of a GPU that its attention kernel computes at least."""
    batched_tokens: Annotated[int, Ge(1)] = 8192
    """Of one step of a rank; vLLM's own default on H200."""
    rate: Annotated[float, Ge(0)] = 0.0
    """Requests a second; 0: as fast as concurrency lets."""
    ttft_of: Statistic = "mean"
    """What was published of TTFT; the model foretells the mean."""
    fitted: bool = False
    """Was it used to fit the constants? Its error is no test of the model then."""
    source: str = ""
