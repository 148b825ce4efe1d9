"""What fit works out, beside what was published and what real engines logged."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from launcher.fit import GIB, Shape, budget, low_latency_bytes
from launcher.load.choice import Choice, read
from launcher.load.data import Data, shipped
from launcher.model.architecture import Architecture
from launcher.model.profile import Hardware, Model

LOGS = Path(__file__).parent / "logs"
DATA_H200 = Path(__file__).parents[3] / "scripts/h200/data"
DATA = Data((shipped(),))
H200 = read(Hardware, Choice("h200", ""), DATA)


def architecture_of(model: str, data: Data) -> Architecture:
    found = read(Model, Choice(model, ""), data).architecture
    assert found
    return found


V32 = architecture_of("deepseek-v3.2", DATA)
assert V32 is not None
V31 = replace(V32, index_heads=0, index_dim=0, index_topk=0)
# one GPU, as the recorded runs had it: 8192 tokens a step, eager
ONE = Shape(
    tensor_parallel=1,
    data_parallel=1,
    hosts=1,
    expert_parallel=False,
    all2all="allgather_reducescatter",
    redundant_experts=0,
    eplb_window=0,
    kv_dtype="bfloat16",
    block_size=64,
    batched_tokens=8192,
    dispatch_tokens=8192,
    expert_tokens=0,
    max_seqs=64,
    max_model_len=8192,
    draft_tokens=0,
    utilization=0.85,
    graphs=False,
    graphs_counted=True,
    dense_whole=False,
    deepep_buffer_gib=1.0,
)


def spread(tensor: int, data: int, *, redundant: int = 0, drafts: int = 0) -> Shape:
    """Experts over all GPUs."""
    return replace(
        ONE,
        tensor_parallel=tensor,
        data_parallel=data,
        hosts=max(1, tensor * data // 8),
        expert_parallel=True,
        redundant_experts=redundant,
        draft_tokens=drafts,
    )


# GiB without the absorbed copies, without and with MTP; worked out by hand from vLLM's sources before there
# was any code. TP8's count the shared experts whole, which vLLM divides there: 2.08 GiB (MTP's: 0.04) less.
TABLE = (
    (spread(8, 1), 82.4 - 2.08, 84.0 - 2.12),
    (spread(2, 4), 87.8, 89.5),
    (spread(1, 8), 95.0, 96.7),
    (spread(2, 8), 49.7, 50.7),
    (spread(2, 8, redundant=16), 52.1, 53.2),
    (spread(2, 8, redundant=32), 54.5, 55.6),
    (spread(1, 16), 56.9, 58.0),
    (spread(1, 16, redundant=32), 61.7, 62.8),
    (spread(2, 16), 30.7, 31.4),
)


def checkpoint_gib(architecture: Architecture, shape: Shape) -> float:
    """Weights without the copies that vLLM makes itself."""
    lines = budget(architecture, H200, shape).lines
    return sum(line.size_gib for line in lines if line.part == "weights" and line.name != "absorbed copies")


@pytest.mark.parametrize(
    ("shape", "plain", "drafting"), TABLE, ids=lambda v: v.tensor_parallel if isinstance(v, Shape) else ""
)
def test_weights_of_a_gpu_are_the_published_ones(shape: Shape, plain: float, drafting: float) -> None:
    assert checkpoint_gib(V32, shape) == pytest.approx(plain, abs=0.1)
    with_copies_of_the_draft_layer = checkpoint_gib(V32, replace(shape, draft_tokens=1))
    assert with_copies_of_the_draft_layer == pytest.approx(drafting, abs=0.1)


def test_weights_of_r1_are_what_a_public_log_says() -> None:
    """79.41 GiB at TP8 (HabanaAI/vllm-fork #809, on another accelerator, without copies for decode)."""
    assert checkpoint_gib(V31, replace(ONE, tensor_parallel=8)) == pytest.approx(79.41, abs=0.2)


def test_the_whole_model_is_the_published_checkpoint() -> None:
    """671.88 B parameters, 689.4 GB with MTP's own embeddings, which loading drops."""
    plain = replace(ONE, max_model_len=V32.max_context)
    parameters = checkpoint_gib(replace(V32, fp8=False), plain) * GIB / 2
    router_in_float32 = 58 * V32.experts * V32.hidden
    assert parameters - router_in_float32 == pytest.approx(671.88e9, rel=1e-3)
    own_embeddings = 2 * V32.vocabulary * V32.hidden * 2
    size = checkpoint_gib(V32, replace(plain, draft_tokens=1)) * GIB + own_embeddings
    assert size == pytest.approx(689.4e9, rel=2e-3)


@pytest.mark.parametrize(
    ("dtype", "drafts", "expected"),
    [("fp8_ds_mla", 0, 48_068), ("fp8_ds_mla", 1, 48_856), ("bfloat16", 0, 78_324), ("bfloat16", 1, 79_608)],
)
def test_a_token_of_kv_has_the_published_size(dtype: str, drafts: int, expected: int) -> None:
    made = budget(V32, H200, replace(ONE, kv_dtype=dtype, draft_tokens=drafts))
    assert made.kv_bytes_per_token == expected


def test_dense_attention_has_no_indexer_anywhere() -> None:
    made = budget(V31, H200, ONE)
    assert made.kv_bytes_per_token == 61 * 1152
    assert not {"indexer", "sparse workspace", "indices of selected tokens"} & {x.name for x in made.lines}


@pytest.mark.parametrize(
    ("experts", "tokens", "gib"),
    [(256, 128, 1.8), (272, 256, 3.8), (288, 512, 8.0), (256, 1024, 14.2), (256, 8192, 114)],
)
def test_the_low_latency_buffer_is_the_published_one(experts: int, tokens: int, gib: float) -> None:
    size = low_latency_bytes(V32, experts=experts, tokens=tokens) / GIB
    assert size == pytest.approx(gib, rel=0.02)


def logged(name: str, pattern: str) -> float:
    """The number in a recorded log."""
    found = re.search(pattern, (LOGS / f"{name}.log").read_text())
    assert found
    return float(found[1].replace(",", ""))


@pytest.mark.parametrize(("name", "layers"), [("wide4", 4), ("wide2", 2)])
def test_full_width_layers_take_what_a_real_h200_said(name: str, layers: int) -> None:
    """V3.2 at full width with fewer layers, one of them dense; vLLM 0.26, one H200."""
    made = budget(replace(V32, layers=layers, dense_layers=1), H200, ONE)
    assert made.weights_gib == pytest.approx(logged(name, r"Model loading took ([\d.]+) GiB"), abs=0.5)
    assert made.kv_gib == pytest.approx(logged(name, r"Available KV cache memory: ([\d.]+)"), rel=0.05)
    assert made.kv_tokens == pytest.approx(logged(name, r"GPU KV cache size: ([\d,]+)"), rel=0.05)


@pytest.mark.parametrize("name", ["wide4", "wide2", "tiny-prefill", "tiny-decode"])
def test_kv_memory_becomes_as_many_tokens_as_a_real_engine_made_of_it(name: str) -> None:
    layers = 2 if name == "wide2" else 4
    given = replace(ONE, kv_cache_gib=logged(name, r"Available KV cache memory: ([\d.]+)"))
    made = budget(replace(V32, layers=layers, dense_layers=1), H200, given)
    assert made.kv_tokens == pytest.approx(logged(name, r"GPU KV cache size: ([\d,]+)"), rel=3e-4)


def test_a_kv_cache_of_a_given_size_has_the_tokens_and_narrow_layers_the_weights_of_a_real_engine() -> None:
    """The model of scripts/h200 on one H200, vLLM 0.25.1; 0.1 GiB of its weights nobody has explained."""
    data = Data((DATA_H200, shipped()))
    model = architecture_of("v32-4layers", data)
    assert model
    reserved = logged("narrow4", r"reserved ([\d.]+) GiB memory for KV Cache")
    made = budget(model, H200, replace(ONE, kv_cache_gib=reserved))
    assert made.kv_tokens == logged("narrow4", r"GPU KV cache size: ([\d,]+)")
    assert made.weights_gib == pytest.approx(logged("narrow4", r"Model loading took ([\d.]+) GiB"), abs=0.12)


# scripts/h200/measure on one H200, vLLM 0.25.1: another release, another utilization, a longer context
MEASURED = replace(ONE, utilization=0.9, max_model_len=132_096)


@pytest.mark.parametrize(("name", "layers"), [("dsa2-0.25", 2), ("dsa4-0.25", 4)])
def test_what_nothing_was_fitted_on_is_foretold(name: str, layers: int) -> None:
    made = budget(replace(V32, layers=layers, dense_layers=1), H200, MEASURED)
    assert made.weights_gib == pytest.approx(logged(name, r"Model loading took ([\d.]+) GiB"), abs=0.15)
    assert made.kv_gib == pytest.approx(logged(name, r"Available KV cache memory: ([\d.]+)"), rel=0.015)
    assert made.kv_tokens == pytest.approx(logged(name, r"GPU KV cache size: ([\d,]+)"), rel=0.015)


@pytest.mark.parametrize(
    ("name", "layers", "sparse", "kv_dtype"),
    [
        ("mla4-0.25", 4, False, "bfloat16"),
        ("mla2-fp8-0.25", 2, False, "fp8"),
        ("mla4-fp8-0.25", 4, False, "fp8"),
        ("dsa4-fp8-0.25", 4, True, "fp8_ds_mla"),
        ("dsa4-graphs-0.25", 4, True, "bfloat16"),
    ],
)
def test_dense_attention_fp8_kv_and_graphs_are_foretold(
    name: str, layers: int, sparse: bool, kv_dtype: str
) -> None:
    """FlashMLA's sparse kernel makes its workspace and room for queries while weights load."""
    model = replace(V32 if sparse else V31, layers=layers, dense_layers=1)
    made = budget(model, H200, replace(MEASURED, kv_dtype=kv_dtype, graphs="graphs" in name))
    early = {"sparse workspace", "queries of FP8 KV"} if kv_dtype == "fp8_ds_mla" else set()
    beside = sum(line.size_gib for line in made.lines if line.name in early)
    loaded = logged(name, r"Model loading took ([\d.]+) GiB")
    assert made.weights_gib + beside == pytest.approx(loaded, abs=0.15)
    assert made.kv_tokens == pytest.approx(logged(name, r"GPU KV cache size: ([\d,]+)"), rel=0.02)


def test_dense_attention_has_the_weights_and_tokens_of_a_real_engine() -> None:
    given = replace(MEASURED, kv_cache_gib=logged("mla2-0.25", r"reserved ([\d.]+) GiB memory for KV Cache"))
    made = budget(replace(V31, layers=2, dense_layers=1), H200, given)
    assert made.weights_gib == pytest.approx(logged("mla2-0.25", r"Model loading took ([\d.]+) GiB"), abs=0.1)
    assert made.kv_tokens == pytest.approx(logged("mla2-0.25", r"GPU KV cache size: ([\d,]+)"), rel=1e-3)
