"""What must hold of any shape: sums, monotony, and proposals that fit."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from test_fit_published import GIB, H200, ONE, V32

from launcher.fit import Shape, budget, nearest
from launcher.fit.shape import copies_that_divide

POWERS = st.sampled_from([1, 2, 4, 8, 16])


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Any spread over up to 128 GPUs, of any back end and settings."""
    tensor, data = draw(POWERS), draw(POWERS)
    assume(tensor * data <= 128)
    copies = draw(st.integers(0, 64))
    redundant = copies_that_divide(256, copies, tensor * data) if copies else 0
    tokens = draw(st.sampled_from([128, 256, 512, 2048, 8192]))
    backends = [
        "allgather_reducescatter",
        "deepep_high_throughput",
        "deepep_low_latency",
        "deepep_v2",
        "nixl_ep",
    ]
    return replace(
        ONE,
        tensor_parallel=tensor,
        data_parallel=data,
        hosts=max(1, tensor * data // 8),
        expert_parallel=True,
        all2all=draw(st.sampled_from(backends)),
        redundant_experts=redundant,
        eplb_window=1000 if redundant else 0,
        kv_dtype=draw(st.sampled_from(["bfloat16", "fp8_ds_mla"])),
        batched_tokens=tokens,
        dispatch_tokens=tokens,
        max_seqs=draw(st.sampled_from([16, 64, 128])),
        max_model_len=draw(st.sampled_from([8192, 32768, 163840])),
        draft_tokens=draw(st.integers(0, 3)),
        utilization=draw(st.sampled_from([0.5, 0.8, 0.92])),
        graphs=draw(st.booleans()),
        graphs_counted=draw(st.booleans()),
    )


@given(shapes())
def test_routed_experts_over_all_gpus_are_the_checkpoints_and_the_copies(shape: Shape) -> None:
    sizes = {line.name: line.size_gib for line in budget(V32, H200, shape).lines}
    held = (sizes["experts"] + sizes.get("redundant experts", 0.0)) * shape.gpus * GIB
    each = 3 * 7168 * 2048 + 3 * 7168 * 2048 // 128**2 * 4
    assert abs(held / (58 * (256 + shape.redundant_experts) * each) - 1) < 1e-9


@given(shapes())
def test_more_of_anything_leaves_no_more_kv(shape: Shape) -> None:
    kv = budget(V32, H200, shape).kv_gib
    more = (
        replace(shape, batched_tokens=2 * shape.batched_tokens),
        replace(shape, dispatch_tokens=2 * shape.dispatch_tokens),
        replace(shape, max_model_len=2 * shape.max_model_len),
        replace(shape, redundant_experts=shape.redundant_experts + shape.gpus),
        replace(shape, utilization=shape.utilization / 2),
        replace(shape, draft_tokens=max(1, shape.draft_tokens)),
        replace(shape, graphs=True),
    )
    assert all(budget(V32, H200, other).kv_gib <= kv for other in more)


@given(shapes(), st.integers(1, 20000), st.integers(1, 20000))
def test_requests_held_at_once_fit_into_the_cache_and_fall_with_their_length(
    shape: Shape, tokens: int, more: int
) -> None:
    made = budget(V32, H200, shape)
    held = made.requests_per_rank(tokens)
    assert held * tokens <= made.kv_tokens
    assert made.requests_per_rank(tokens + more) <= held <= shape.max_seqs
    assert made.requests_per_instance(tokens) == held * shape.data_parallel


@settings(max_examples=40)
@given(shapes())
def test_what_is_proposed_fits_and_what_fits_is_left_alone(shape: Shape) -> None:
    found = nearest(V32, H200, shape, utilization=0.92, context=8192)
    first = budget(V32, H200, shape)
    if found is None:
        assert not first.fits
        return
    edits, made = found
    assert made.fits
    assert (not edits) == first.fits
    assert all(edit.before != edit.after for edit in edits)
    assert not made.shape.eplb_window or (256 + made.shape.redundant_experts) % made.shape.gpus == 0
    assert made.max_context >= min(8192, shape.max_model_len)
    assert made.shape.batched_tokens >= min(shape.batched_tokens, made.shape.max_seqs)


def test_the_cheapest_change_is_proposed_first() -> None:
    """A buffer made for 8192 tokens takes 114 GiB; MTP, copies and hosts are left alone."""
    decode = replace(
        ONE,
        tensor_parallel=2,
        data_parallel=8,
        hosts=2,
        expert_parallel=True,
        all2all="deepep_low_latency",
        redundant_experts=32,
        max_seqs=256,
        draft_tokens=1,
        utilization=0.92,
    )
    found = nearest(V32, H200, decode, utilization=0.92, context=8192)
    assert found
    assert [(edit.knob, edit.before) for edit in found[0]] == [("dispatch_tokens", 8192)]
    assert found[1].shape.batched_tokens == found[1].shape.dispatch_tokens >= 512


def test_one_host_at_tp1_wants_more_hosts_where_nothing_less_helps() -> None:
    alone = replace(
        ONE, data_parallel=8, expert_parallel=True, max_seqs=8192, max_model_len=163840, utilization=0.8
    )
    found = nearest(V32, H200, alone, utilization=0.8, context=163840)
    assert found
    assert [edit.knob for edit in found[0]][-1] in ("tensor_parallel", "hosts")
