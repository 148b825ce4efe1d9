"""fit's rows as text: a table of pools, and every line of a budget with its formula; knows no terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from launcher.cli.words import columns, count
from launcher.fit import GIB, Budget, Shape
from launcher.flows.fit import Load, Row

HEADS = (
    "",
    "pool",
    "instances",
    "shape",
    "weights",
    "buffers",
    "runtime",
    "KV",
    "KV tokens",
    "context",
    "requests",
    "fits",
)
LEFT = ("", "pool", "shape", "fits")
"""Columns of text; all others are numbers, and stand at the right."""


def table(rows: Sequence[Row], load: Load) -> str:
    """A line for each row; sizes are GiB of one GPU, KV tokens those of one rank."""
    size = f"{load.prompt} + {load.answer} tokens"
    told = columns([HEADS, *(_cells(row) for row in rows)], left=LEFT)
    note = f"GiB of a GPU, KV tokens of a rank, requests of {size} at once in all instances of the pool"
    return f"{told}\n\n{note}"


def explained(rows: Iterable[Row]) -> str:
    """Every line of each row's budget: GiB, formula with its numbers, source."""
    return "\n\n".join("\n".join(_explained(row)) for row in rows)


def spread(shape: Shape) -> str:
    """`TP2 × DP8, 2 hosts`."""
    return f"TP{shape.tensor_parallel} × DP{shape.data_parallel}, {count(shape.hosts, 'host')}"


def document(row: Row) -> dict[str, Any]:
    """A row for programs."""
    made = row.budget
    return {
        "name": row.name,
        "pool": row.pool,
        "instances": row.instances,
        "shape": made.shape,
        "total_gib": made.total_gib,
        "allowed_gib": made.allowed_gib,
        "lines": made.lines,
        "weights_gib": made.weights_gib,
        "kv_gib": made.kv_gib,
        "kv_bytes_per_token": made.kv_bytes_per_token,
        "kv_tokens_per_rank": made.kv_tokens,
        "max_context": made.max_context,
        "requests": row.requests,
        "fits": row.fits,
        "reasons": made.reasons,
        "edits": row.edits,
    }


def _cells(row: Row) -> tuple[str, ...]:
    made = row.budget
    return (
        row.name,
        row.pool,
        str(row.instances),
        spread(made.shape),
        *(f"{made.part_gib(part):.1f}" for part in ("weights", "buffers", "runtime")),
        f"{made.kv_gib:.1f}",
        f"{made.kv_tokens:,}",
        f"{made.max_context:,}",
        f"{row.requests:,}",
        "yes" if row.fits else "no: " + "; ".join(made.reasons),
    )


def _explained(row: Row) -> Iterator[str]:
    made = row.budget
    yield f"{row.name} {row.pool}: {spread(made.shape)}, GiB of each GPU"
    width = max(len(line.name) for line in made.lines)
    formula = max(len(line.formula) for line in made.lines)
    for line in made.lines:
        yield f"  {line.size_gib:7.2f}  {line.name:<{width}}  {line.formula:<{formula}}  {line.source}"
    yield f"  {made.taken_gib:7.2f}  {'together':<{width}}"
    yield f"  {made.kv_gib:7.2f}  {'KV':<{width}}  {_kv_formula(made)}"
    block = made.shape.block_size
    yield f"  {made.kv_tokens:,} tokens of KV, in blocks of {block} × {made.kv_bytes_per_token:,} B"


def _kv_formula(made: Budget) -> str:
    shape = made.shape
    if shape.kv_cache_gib is not None:
        return f"kv-cache-memory-bytes {shape.kv_cache_gib * GIB:,.0f}"
    return f"{shape.utilization:g} × {made.total_gib:g} − {made.taken_gib:.2f}"
