"""Architecture, hardware and shape → Budget: the sum, what is left for KV, and whether that is enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from launcher.fit.buffers import buffer_lines, runtime_lines
from launcher.fit.kv import kv_bytes_per_token
from launcher.fit.line import Budget
from launcher.fit.shape import Shape
from launcher.fit.weights import weight_lines
from launcher.model.architecture import Architecture
from launcher.model.overheads import Overheads
from launcher.model.problem import InputError, Problem
from launcher.model.profile import Hardware


def budget(architecture: Architecture, hardware: Hardware, shape: Shape) -> Budget:
    """A GPU's memory. InputError for hardware without GPUs, or whose overheads nobody has measured."""
    overheads = overheads_of(hardware)
    lines = (
        *weight_lines(architecture, shape),
        *buffer_lines(architecture, shape),
        *runtime_lines(architecture, shape, overheads),
    )
    allowed = shape.utilization * hardware.gpu_memory_gib
    left = allowed - sum(line.size_gib for line in lines)
    layers = architecture.layers + (architecture.mtp_layers if shape.draft_tokens else 0)
    made = Budget(
        shape=shape,
        total_gib=hardware.gpu_memory_gib,
        allowed_gib=allowed,
        lines=lines,
        kv_gib=left if shape.kv_cache_gib is None else shape.kv_cache_gib,
        kv_bytes_per_token=kv_bytes_per_token(architecture, shape.kv_dtype, layers=layers),
    )
    return replace(made, reasons=tuple(_reasons(made, overheads)))


def overheads_of(hardware: Hardware) -> Overheads:
    """What was measured on this hardware. InputError where nothing was."""
    if hardware.overheads is None or not hardware.gpu_memory_gib or not hardware.gpus_per_host:
        what = f"hardware {hardware.name} has no GPU memory that is known"
        do = "choose hardware with gpu_memory_gib and overheads, for instance h200"
        raise InputError(Problem(what, where=hardware.source, do=do))
    return hardware.overheads


def _reasons(made: Budget, overheads: Overheads) -> Iterator[str]:
    """Everything that keeps the engine from starting."""
    shape, free = made.shape, made.total_gib - overheads.context.gib
    graphs = overheads.graphs.gib if shape.graphs and not shape.graphs_counted else 0.0
    if shape.kv_cache_gib is None:
        wanted, why = made.allowed_gib + graphs, f"utilization {shape.utilization:g}"
    else:
        wanted, why = made.taken_gib + shape.kv_cache_gib + graphs, f"KV of {shape.kv_cache_gib:.1f} GiB"
    if wanted > free:
        yield f"{why} wants {wanted:.1f} GiB of {free:.1f} free ones"
    if made.kv_gib <= 0:
        yield f"{made.taken_gib:.1f} GiB without any KV, of {made.allowed_gib:.1f} allowed"
    elif made.kv_tokens < shape.max_model_len:
        yield f"KV for {made.kv_tokens:,} tokens, a request may have {shape.max_model_len:,}"
