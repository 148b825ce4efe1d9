"""Verdicts as words, for screens and reports."""

from __future__ import annotations

from launcher.model.bench import Judgement, Measured
from launcher.model.sla import Sla


def verdict_line(measured: Measured, sla: Sla | None) -> str:
    """`FAIL (article)`; without a service level, whether the figures can be trusted."""
    if sla:
        return f"{measured.verdict} ({sla.name})"
    return "CANNOT TELL" if measured.doubts else "no service level to hold it against"


def share_text(value: float | None) -> str:
    """`4.0 %`; a dash for what is not known."""
    return "–" if value is None else f"{100 * value:.1f} %"


def judged_line(judged: Judgement) -> str:
    """`ttft_ms mean 49.62, limit ≤ 1, margin -4861.6% (n = 16)`."""
    limit = judged.name
    sign = "≤" if judged.at_most else "≥"
    if judged.value is None or judged.margin is None:
        return f"{limit} {sign} {judged.bound:g}: {judged.why}"
    held = f"{limit} {judged.value:.2f} {sign} {judged.bound:g}" if judged.verdict == "PASS" else ""
    line = held or f"{limit} {judged.value:.2f}, limit {sign} {judged.bound:g}"
    samples = " + ".join(map(str, judged.samples))
    spread = f", ±{judged.spread:.2f}" if len(judged.samples) > 1 else ""
    why = f": {judged.why}" if judged.why else ""
    return f"{line}, margin {judged.margin:+.1%} (n = {samples}{spread}){why}"
