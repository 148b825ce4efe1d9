"""Two benchmarks as text: what differs, each figure on both sides, and which is worse; knows no terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from launcher.bench.against import Change, Difference
from launcher.bench.told import share_text
from launcher.cli.words import columns

if TYPE_CHECKING:
    from launcher.flows.against import Compared, Gated

HEADS = ("", "figure", "before", "after", "ratio", "worse by", "noise")


def compared_text(compared: Compared) -> str:
    """Every figure of both."""
    parts = [_head(compared), *differing(compared.differences)]
    return "\n".join([*parts, "", columns([HEADS, *_rows(compared.changes)], left=("", "figure"))])


def gated_text(gated: Gated) -> str:
    """What the gate looks at, and what it says of each."""
    heads = (*HEADS, "allowed", "verdict")
    rows = [
        (*row, f"{j.allowed:.0%}", j.verdict)
        for row, j in zip(_rows([j.change for j in gated.judged]), gated.judged, strict=True)
    ]
    parts = [_head(gated), *differing(gated.differences), ""]
    parts += [columns([heads, *rows], left=("", "figure", "verdict")), ""]
    return "\n".join([*parts, *verdict_lines(gated)])


def verdict_lines(gated: Gated) -> Iterator[str]:
    """`gate: FAIL`, and each figure that is worse, or of which nothing can be said."""
    yield f"gate: {gated.verdict}"
    for judged in gated.judged:
        if judged.verdict != "PASS":
            yield f"  {judged.verdict:<11}  {judged}"


def differing(found: Sequence[Difference]) -> Iterator[str]:
    """What the figures may differ by, line by line."""
    for one in found:
        yield f"  {one.of:<9}  {one.what}: {one.before} → {one.after}"
    if not found:
        yield "  topology, workload, versions and settings are the same"


def change_document(change: Change) -> dict[str, Any]:
    """For programs."""
    return {
        "point": change.point,
        "figure": change.figure.name,
        "of": change.figure.of,
        "before": change.before,
        "after": change.after,
        "ratio": change.apart.ratio,
        "worse_by": change.apart.worse_by,
        "noise": change.apart.noise,
    }


def _head(pair: Compared | Gated) -> str:
    before, after = pair.before, pair.after
    runs = " → ".join(f"{one.run} ({one.layout})" for one in (before, after))
    return f"{after.workload.name} on {after.target}: {runs}"


def _rows(found: Sequence[Change]) -> Iterator[tuple[str, ...]]:
    last = ""
    for change in found:
        point = str(change.point)
        yield (
            "" if point == last else point,
            str(change.figure),
            f"{change.before.middle:.2f}",
            f"{change.after.middle:.2f}",
            f"{change.apart.ratio:.3f}",
            share_text(change.apart.worse_by),
            share_text(change.apart.noise),
        )
        last = point
