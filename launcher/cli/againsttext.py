"""Two benchmarks as text: what differs, each figure on both sides, and which is worse; knows no terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from launcher.bench.against import Change, Difference, Judged
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
            yield f"  {judged.verdict:<11}  {judged_line(judged)}"


def judged_line(judged: Judged) -> str:
    """`concurrency 2: ttft_ms mean 49.62 → 151.10, 204.5 % worse, allowed 10 % and noise 4.0 %`."""
    change = judged.change
    told = f"{change.point}: {change.figure} {change.before.middle:.2f} → {change.after.middle:.2f}"
    if judged.why:
        return f"{told}: {judged.why}"
    worse = f"{_share(change.apart.worse_by)} worse"
    return f"{told}, {worse}, allowed {judged.allowed:.0%} and noise {_share(change.apart.noise)}"


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
            _share(change.apart.worse_by),
            _share(change.apart.noise),
        )
        last = point


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"
