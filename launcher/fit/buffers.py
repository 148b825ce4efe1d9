"""Bytes beside weights and KV on one GPU: exchange buffers, workspaces, activations; knows no release."""

from __future__ import annotations

from collections.abc import Iterator

from launcher.fit.line import GIB, Line
from launcher.fit.shape import Shape
from launcher.fit.weights import BF16, FP32, expert_bytes, local_experts
from launcher.model.architecture import Architecture
from launcher.model.overheads import Overheads

FP8_GROUP = 128
"""Activations in FP8 have one float32 scale for so many values."""
WORKSPACE_FACTOR = 5
"""Contexts that the sparse prefill workspace holds (vLLM sparse_mla_prefill_workspace_factor)."""


def low_latency_bytes(architecture: Architecture, *, experts: int, tokens: int) -> float:
    """DeepEP's low-latency buffer (LowLatencyLayout): two halves, each sends and receives every expert's
    tokens, once as FP8 with scales beside room for BF16."""
    message = architecture.hidden // FP8_GROUP * FP32 + architecture.hidden * BF16
    return 4.0 * experts * tokens * message


def buffer_lines(architecture: Architecture, shape: Shape) -> Iterator[Line]:
    """What is allocated once, for exchange between GPUs and for EPLB."""
    a = architecture
    if shape.low_latency:
        experts, tokens = a.experts + shape.redundant_experts, shape.dispatch_tokens
        size = low_latency_bytes(a, experts=experts, tokens=tokens)
        message = f"({a.hidden}/{FP8_GROUP} × {FP32} + {a.hidden} × {BF16}) B"
        text = f"4 × {experts} experts × {tokens} tokens × {message}"
        yield _line("low-latency RDMA buffer", size, text, "DeepEP LowLatencyLayout")
    if shape.all2all == "deepep_low_latency" and shape.low_latency:
        yield Line("buffers", "DeepEP NVLink buffer", shape.deepep_buffer_gib, *_deepep(shape, parts=1))
    if shape.high_throughput:
        parts = 2 if shape.hosts > 1 else 1
        name = "DeepEP NVLink and RDMA buffers" if parts == 2 else "DeepEP NVLink buffer"
        yield Line("buffers", name, parts * shape.deepep_buffer_gib, *_deepep(shape, parts=parts))
    if shape.eplb_window:
        moe = a.layers - a.dense_layers
        slots = a.experts + shape.redundant_experts
        load = shape.eplb_window * moe * slots * FP32
        move = local_experts(a, shape) * expert_bytes(a)
        text = f"{move:,.0f} B, one layer's experts, + {shape.eplb_window} steps × {moe} × {slots} × {FP32} B"
        yield _line("EPLB", move + load, text, "vLLM distributed/eplb/eplb_state.py")
    if a.sparse:
        yield from _sparse_lines(a, shape)


def _sparse_lines(a: Architecture, shape: Shape) -> Iterator[Line]:
    topk = shape.batched_tokens * a.index_topk * FP32
    text = f"{shape.batched_tokens} tokens × {a.index_topk} × {FP32} B"
    yield _line("indices of selected tokens", topk, text, "vLLM topk_indices_buffer")
    row = (a.kv_lora + a.rope_head) * BF16
    size = WORKSPACE_FACTOR * shape.max_model_len * row
    text = f"{WORKSPACE_FACTOR} × {shape.max_model_len:,} tokens × {row} B; the indexer's shares it"
    yield _line("sparse workspace", size, text, "vLLM flashmla_sparse.py, indexer.py")
    if shape.kv_dtype.startswith("fp8"):
        heads = a.heads / shape.tensor_parallel
        text = f"{shape.batched_tokens} tokens × {heads:g} heads × {row} B, beside the workspace"
        yield _line("queries of FP8 KV", shape.batched_tokens * heads * row, text, "vLLM flashmla_sparse.py")


def runtime_lines(architecture: Architecture, shape: Shape, overheads: Overheads) -> Iterator[Line]:
    """The peak of a step, and what only a run tells."""
    yield _attention_peak(architecture, shape)
    yield _experts_peak(architecture, shape)
    told = [("other activations", overheads.activations), ("CUDA libraries", overheads.libraries)]
    if shape.gpus > 1:
        yield _communicators(shape, overheads)
    if shape.graphs and shape.graphs_counted:
        told.append(("CUDA graphs", overheads.graphs))
    for name, measured in told:
        yield Line("runtime", name, measured.gib, f"{measured.gib:g} GiB", measured.known_from)


def _communicators(shape: Shape, overheads: Overheads) -> Line:
    """Each group of GPUs that vLLM makes has its own: all, tensor-, data- and expert-parallel, EPLB's."""
    first, each = overheads.first_communicator, overheads.communicator
    more = sum((shape.tensor_parallel > 1, shape.data_parallel > 1, shape.exchanges, shape.eplb_window > 0))
    text = f"{first.gib:g} + {more} × {each.gib:g} GiB"
    source = f"{first.known_from}; {each.known_from}"
    return Line("runtime", "NCCL", first.gib + more * each.gib, text, source)


def _attention_peak(a: Architecture, shape: Shape) -> Line:
    """Absorbed queries and the latent output, of all tokens of a step."""
    heads = a.heads / shape.tensor_parallel
    each = heads * (2 * a.kv_lora + a.rope_head) * BF16
    text = f"{shape.batched_tokens} tokens × {heads:g} heads × (2 × {a.kv_lora} + {a.rope_head}) × {BF16} B"
    size = shape.batched_tokens * each
    return Line("runtime", "attention activations", size / GIB, text, "shapes of MLA's absorbed form")


def _experts_peak(a: Architecture, shape: Shape) -> Line:
    """The two workspaces of the experts' matrix products, and where batches are fixed also the tokens that
    came in and the result (vLLM fused_moe/experts, workspace_shapes)."""
    source = "vLLM fused_moe/experts, workspace_shapes"
    gate_up = 2 * a.expert_ffn
    if shape.low_latency:
        rows = local_experts(a, shape) * shape.experts_over * shape.dispatch_tokens
        arrived = a.hidden + a.hidden // FP8_GROUP * FP32
        each = (max(a.hidden, gate_up) + a.expert_ffn + a.hidden) * BF16 + arrived
        text = f"{rows:,.0f} rows of every rank's batch × {each:,.0f} B"
        return Line("runtime", "expert activations", rows * each / GIB, text, source)
    tokens, how = _expert_tokens(shape)
    each = (max(a.hidden, gate_up) + max(a.hidden, a.expert_ffn)) * BF16
    size = tokens * a.experts_per_token * each
    text = f"{how} × {a.experts_per_token} experts × {each:,.0f} B"
    return Line("runtime", "expert activations", size / GIB, text, source)


def _expert_tokens(shape: Shape) -> tuple[float, str]:
    """Tokens whose experts one GPU works through at once, and in words."""
    tokens, how = float(shape.batched_tokens), f"{shape.batched_tokens} tokens"
    if shape.high_throughput:  # each GPU of a rank sends its part, and gets as much where load is balanced
        tokens /= shape.tensor_parallel
        how = f"{shape.batched_tokens}/{shape.tensor_parallel} tokens"
    elif shape.exchanges:  # gathered: every rank's tokens are at hand
        tokens *= shape.data_parallel
        how = f"{shape.batched_tokens} × {shape.data_parallel} tokens"
    if 0 < shape.expert_tokens < tokens:
        return shape.expert_tokens, f"{shape.expert_tokens} tokens at once"
    return tokens, how


def _deepep(shape: Shape, *, parts: int) -> tuple[str, str]:
    return f"{parts} × {shape.deepep_buffer_gib:g} GiB", "VLLM_DEEPEP_BUFFER_SIZE_MB"


def _line(name: str, size_bytes: float, formula: str, source: str) -> Line:
    return Line("buffers", name, size_bytes / GIB, formula, source)
