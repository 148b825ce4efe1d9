"""The fewest, cheapest changes after which a shape fits; knows no files to change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Literal, TypeAlias

from launcher.fit.budget import budget
from launcher.fit.line import Budget
from launcher.fit.shape import Shape, copies_that_divide
from launcher.model.architecture import Architecture
from launcher.model.profile import Hardware

Knob: TypeAlias = Literal[
    "utilization",
    "batched_tokens",
    "dispatch_tokens",
    "redundant_experts",
    "draft_tokens",
    "max_model_len",
    "tensor_parallel",
    "hosts",
]
KNOBS: tuple[Knob, ...] = (
    "utilization",
    "dispatch_tokens",
    "batched_tokens",
    "redundant_experts",
    "draft_tokens",
    "max_model_len",
    "tensor_parallel",
    "hosts",
)
"""Cheapest first: a number that nobody notices, then speed, then what users may ask for, then more hosts."""
LEAST_TOKENS = 64
"""A KV block: below it a step has less than the kernels' own tile."""
CONTEXT_STEP = 1024


@dataclass(frozen=True, slots=True)
class Edit:
    """One field of a Shape and what it becomes; `hosts` and `tensor_parallel` take `data_parallel` along."""

    knob: Knob
    before: float
    after: float


def nearest(
    architecture: Architecture, hardware: Hardware, shape: Shape, *, utilization: float, context: int
) -> tuple[tuple[Edit, ...], Budget] | None:
    """The changes and the budget after them; () for a shape that fits; None where nothing helps.

    `utilization` is the highest that may be proposed, `context` the tokens that a
    request must be able to have.
    """
    first = budget(architecture, hardware, shape)
    if first.fits:
        return (), first
    for count in range(1, len(KNOBS) + 1):
        for knobs in combinations(KNOBS, count):
            ways = (tuple(_ways(k, architecture, shape, utilization=utilization)) for k in knobs)
            for edits in product(*ways):
                found = _tried(architecture, hardware, shape, edits=edits, context=context)
                if found:
                    return found
    return None


def _tried(
    architecture: Architecture, hardware: Hardware, shape: Shape, *, edits: tuple[Edit, ...], context: int
) -> tuple[tuple[Edit, ...], Budget] | None:
    """The changes and their budget if it fits; a shorter context is what the others leave room for."""
    changed = shape
    for edit in edits:
        changed = _changed(changed, edit)
    copies = copies_that_divide(architecture.experts, changed.redundant_experts, changed.gpus)
    if shape.eplb_window and copies != changed.redundant_experts:
        changed = replace(changed, redundant_experts=copies)
        told = tuple(edit for edit in edits if edit.knob != "redundant_experts")
        edits = (*told, Edit("redundant_experts", shape.redundant_experts, copies))
    made = budget(architecture, hardware, changed)
    if any(edit.knob == "max_model_len" for edit in edits):
        longest = made.kv_tokens // CONTEXT_STEP * CONTEXT_STEP
        if not context <= longest < shape.max_model_len:
            return None
        changed = replace(changed, max_model_len=longest)
        edits = tuple(replace(e, after=longest) if e.knob == "max_model_len" else e for e in edits)
        made = budget(architecture, hardware, changed)
    return (edits, made) if made.fits else None


def _ways(knob: Knob, architecture: Architecture, shape: Shape, *, utilization: float) -> Iterator[Edit]:
    """Ways to turn one knob, the smallest turn first."""
    before = getattr(shape, knob)
    for after in _values(knob, architecture, shape, utilization=utilization):
        yield Edit(knob, before, after)


def _values(knob: Knob, a: Architecture, shape: Shape, *, utilization: float) -> Iterator[float]:
    step = shape.max_seqs * (1 + shape.draft_tokens)
    match knob:
        case "utilization":
            if shape.utilization < utilization and shape.kv_cache_gib is None:
                yield utilization
        case "dispatch_tokens":
            if shape.low_latency:
                # a step must still hold every request's tokens
                yield from _halves(shape.dispatch_tokens, step if _sized_by_step(shape) else LEAST_TOKENS)
        case "batched_tokens":
            if not _sized_by_step(shape):
                yield from _halves(shape.batched_tokens, step)
        case "redundant_experts":
            for count in range(shape.redundant_experts - 1, -1, -1):
                if (a.experts + count) % shape.experts_over == 0:
                    yield count
        case "draft_tokens":
            if shape.draft_tokens:
                yield 0
        case "max_model_len":
            yield shape.max_model_len
        case "tensor_parallel":
            if shape.data_parallel // shape.hosts % 2 == 0 and a.heads % (2 * shape.tensor_parallel) == 0:
                yield 2 * shape.tensor_parallel
        case "hosts":
            yield from (shape.hosts * factor for factor in (2, 4))


def _halves(value: int, least: int) -> Iterator[int]:
    while value // 2 >= max(least, LEAST_TOKENS):
        value //= 2
        yield value


def _changed(shape: Shape, edit: Edit) -> Shape:
    after = int(edit.after)
    match edit.knob:
        case "utilization":
            return replace(shape, utilization=edit.after)
        case "dispatch_tokens" if _sized_by_step(shape):
            return replace(shape, dispatch_tokens=after, batched_tokens=after)
        case "dispatch_tokens":
            return replace(shape, dispatch_tokens=after)
        case "batched_tokens":
            return replace(shape, batched_tokens=after)
        case "redundant_experts":
            return replace(shape, redundant_experts=after)
        case "draft_tokens":
            return replace(shape, draft_tokens=after)
        case "max_model_len":
            return replace(shape, max_model_len=after)
        case "tensor_parallel":
            return replace(shape, tensor_parallel=after, data_parallel=shape.data_parallel // 2)
        case "hosts":
            return replace(shape, hosts=after, data_parallel=shape.data_parallel * after // shape.hosts)


def _sized_by_step(shape: Shape) -> bool:
    """Does the low-latency buffer hold a whole step, which then is what there is to change?"""
    return shape.low_latency and shape.dispatch_tokens == shape.batched_tokens
