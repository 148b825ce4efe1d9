"""Bytes of a model's weights on one GPU; knows nothing of what runs beside them."""

from __future__ import annotations

from collections.abc import Iterator

from launcher.fit.line import GIB, Line
from launcher.fit.shape import Shape
from launcher.model.architecture import Architecture

BF16 = 2
FP32 = 4
FP8_BLOCK = 1 + FP32 / 128**2
"""Bytes of a weight in FP8 with one float32 scale for each block of 128 × 128 (the checkpoint's
quantization_config)."""
CONFIG = "the model's config.json"
LAYERS = "vLLM deepseek_v2.py and models/deepseek_v32"


def linear_bytes(architecture: Architecture, parameters: float) -> float:
    """A linear layer as the checkpoint has it."""
    return parameters * (FP8_BLOCK if architecture.fp8 else BF16)


def expert_bytes(architecture: Architecture) -> float:
    """Gate, up and down of one expert."""
    return linear_bytes(architecture, 3 * architecture.hidden * architecture.expert_ffn)


def attention_bytes(architecture: Architecture, tensor_parallel: int) -> float:
    """One layer's: the projections down to latent are on every GPU, those of heads are divided."""
    a = architecture
    whole = a.hidden * (a.q_lora + a.kv_lora + a.rope_head)
    query = a.q_lora * a.heads * (a.nope_head + a.rope_head)
    key_value = a.kv_lora * a.heads * (a.nope_head + a.value_head)
    out = a.heads * a.value_head * a.hidden
    return linear_bytes(a, whole + (query + key_value + out) / tensor_parallel)


def indexer_bytes(architecture: Architecture) -> float:
    """One layer's DSA indexer, on every GPU; keys and weights of heads are BF16."""
    a = architecture
    query = linear_bytes(a, a.q_lora * a.index_heads * a.index_dim)
    return query + a.hidden * (a.index_dim + a.index_heads) * BF16 if a.sparse else 0.0


def absorbed_bytes(architecture: Architecture, tensor_parallel: int) -> float:
    """One layer's BF16 copies of the key and value projections, which decode multiplies with directly."""
    a = architecture
    return a.kv_lora * a.heads * (a.nope_head + a.value_head) * BF16 / tensor_parallel


def local_experts(architecture: Architecture, shape: Shape) -> float:
    """Routed experts on one GPU, redundant ones with them; a fraction where each is sliced."""
    total = architecture.experts + shape.redundant_experts
    return -(-total // shape.experts_over) if shape.expert_parallel else total / shape.experts_over


def weight_lines(architecture: Architecture, shape: Shape) -> Iterator[Line]:
    """Every part of the model."""
    a, tp = architecture, shape.tensor_parallel
    moe = a.layers - a.dense_layers
    one, over = expert_bytes(a), shape.experts_over
    yield _line("experts", moe * a.experts / over * one, f"{moe} layers × {a.experts}/{over} × {one:,.0f} B")
    extra = local_experts(a, shape) - a.experts / over
    if extra:
        text = f"{moe} layers × {extra:g} × {one:,.0f} B"
        yield _line("redundant experts", moe * extra * one, text, "vLLM distributed/eplb")
    shared = a.shared_experts * one / _parts(shape)
    yield _line("shared experts", moe * shared, f"{moe} layers × {shared:,.0f} B {_how(shape)}")
    attention = attention_bytes(a, tp)
    yield _line("attention", a.layers * attention, f"{a.layers} layers × {attention:,.0f} B at TP {tp}")
    copies = absorbed_bytes(a, tp)
    text = f"{a.layers} layers × {copies:,.0f} B, BF16, at TP {tp}"
    yield _line("absorbed copies", a.layers * copies, text, "vLLM mla_attention.py, W_UK and W_UV")
    if a.sparse:
        indexer = indexer_bytes(a)
        yield _line("indexer", a.layers * indexer, f"{a.layers} layers × {indexer:,.0f} B on each GPU")
    whole = shape.dense_whole and shape.sequence_parallel
    dense = linear_bytes(a, 3 * a.hidden * a.dense_ffn) / (1 if whole else tp)
    yield _line("dense MLP", a.dense_layers * dense, f"{a.dense_layers} layers × {dense:,.0f} B")
    router = a.experts * a.hidden * FP32
    yield _line("router", moe * router, f"{moe} layers × {a.experts} × {a.hidden} × {FP32} B")
    text = f"2 × {a.vocabulary:,} × {a.hidden} × {BF16} B / {tp}"
    yield _line("embeddings", 2 * a.vocabulary * a.hidden * BF16 / tp, text)
    yield from _mtp(a, shape)


def _mtp(a: Architecture, shape: Shape) -> Iterator[Line]:
    """The draft layer is a whole MoE layer, and a projection of two hidden states in BF16. Its embeddings are
    the model's own once loaded."""
    if not (shape.draft_tokens and a.mtp_layers):
        return
    tp = shape.tensor_parallel
    experts = local_experts(a, shape) * expert_bytes(a)
    shared = a.shared_experts * expert_bytes(a) / _parts(shape)
    attention = attention_bytes(a, tp) + absorbed_bytes(a, tp) + indexer_bytes(a)
    rest = a.experts * a.hidden * FP32 + 2 * a.hidden**2 * BF16
    each = experts + shared + attention + rest
    text = f"{a.mtp_layers} × ({experts:,.0f} experts + {shared:,.0f} shared + {attention:,.0f} attention"
    text += f" + {rest:,.0f} router and projection) B"
    yield _line("MTP layer", a.mtp_layers * each, text, "vLLM deepseek_mtp.py")


def _parts(shape: Shape) -> int:
    return 1 if shape.sequence_parallel else shape.tensor_parallel


def _how(shape: Shape) -> str:
    return "on each GPU (sequence-parallel MoE)" if shape.sequence_parallel else "at TP"


def _line(name: str, size_bytes: float, formula: str, source: str = f"{CONFIG}; {LAYERS}") -> Line:
    return Line("weights", name, size_bytes / GIB, formula, source)
