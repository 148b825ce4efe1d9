"""A forecast as text: a line for each load, its terms, and the model's error on each point; no terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from launcher.cli.words import columns
from launcher.flows.predict import Forecast, Row
from launcher.predict.group import Part, total

HEADS = ("load", "req/s", "tok/s", "prefill tok/s/GPU", "output tok/s/GPU", "TTFT ms", "TPOT ms", "bound by")
LEFT = ("load", "bound by", "point", "figure", "")


def text(made: Forecast, *, explain: bool) -> str:
    """Everything there is to say, each block under its heading."""
    blocks = [
        f"{made.name}: a model, not a measurement",
        columns([HEADS, *(_cells(row) for row in made.rows)], left=LEFT),
        "tok/s: prompt and output tokens; tok/s/GPU: over the GPUs of that pool; TTFT and TPOT: means",
    ]
    if made.sla:
        blocks.append(_limits(made))
    if explain:
        blocks += ["\n".join(_terms(row)) for row in made.rows]
    blocks.append("the model against what was published, error = model / published - 1\n" + _errors(made))
    return "\n\n".join(blocks)


def document(made: Forecast) -> dict[str, Any]:
    """The same for programs."""
    return {
        "name": made.name,
        "model": "constants of configs/performance, not a measurement",
        "rows": [
            {"load": row.load, "prediction": row.prediction, "prefill": row.prefill, "decode": row.decode}
            for row in made.rows
        ],
        "errors": [
            {
                "point": e.point,
                "figure": e.measure,
                "model": e.predicted,
                "published": e.measured,
                "error": e.relative,
                "fitted": e.point in made.fitted,
            }
            for e in made.errors
        ],
    }


def _cells(row: Row) -> tuple[str, ...]:
    load, made = row.load, row.prediction
    asked = [f"{load.input_tokens} + {load.output_tokens} tokens"]
    asked += [f"{load.rate:g} req/s"] if load.rate else []
    asked += [f"{load.concurrency} at once"] if load.concurrency else []
    return (
        ", ".join(asked),
        f"{made.requests_per_s:.1f}",
        f"{made.tokens_per_s:,.0f}",
        f"{made.prefill_per_gpu:,.0f}" if made.prefill_per_gpu else "",
        f"{made.output_per_gpu:,.0f}" if made.output_per_gpu else "",
        f"{made.ttft_ms:,.0f}" if made.ttft_ms else "",
        f"{made.tpot_ms:.1f}" if made.tpot_ms else "",
        made.limit,
    )


def _limits(made: Forecast) -> str:
    assert made.sla is not None
    shown = (
        f"{name} {'≤' if limit.at_most is not None else '≥'} {limit.at_most or limit.at_least:g} ({limit.of})"
        for name, limit in made.sla.limits.items()
    )
    return f"service level {made.sla.name}: {', '.join(shown)}; only a measurement can tell"


def _terms(row: Row) -> Iterator[str]:
    yield _cells(row)[0]
    for title, parts, unit in (
        ("a prompt token, GPU µs", row.prefill, "µs"),
        ("a decode step, ms", row.decode, "ms"),
    ):
        if parts:
            yield f"  {title}: {total(parts):.1f}"
            yield from (_term(part, unit) for part in parts)


def _term(part: Part, unit: str) -> str:
    return f"    {part.name:<16} {part.amount:8.2f} {unit}  {part.formula}"


def _errors(made: Forecast) -> str:
    rows = [
        (
            e.point,
            e.measure,
            f"{e.predicted:,.1f}",
            f"{e.measured:,.1f}",
            f"{e.relative:+.0%}",
            "fitted on it" if e.point in made.fitted else "",
        )
        for e in made.errors
    ]
    return columns([("point", "figure", "model", "published", "error", ""), *rows], left=LEFT)
