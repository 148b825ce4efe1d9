"""A tune as text: its path before, its decisions and figures after; Markdown and JSON of its report."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from statistics import median_low
from typing import Any

from launcher.bench.keep import plain
from launcher.cli.words import columns
from launcher.flows.tune_records import Tuned
from launcher.model.tune import Decision, Trial, Tune
from launcher.model.values import Json

FORMAT = 1
"""Of the JSON; it rises when what is there already changes its meaning or goes."""
HEADS = ("", "at once", "tok/s per GPU", "TTFT", "TPOT", "service level", "")
WIDTH = 106


def path_text(tune: Tune) -> str:
    """What it will try, and by what it decides."""
    heads = ("step", "decides", "for")
    rows = [(s.id, s.figure, s.releases and f"vLLM {s.releases}") for s in tune.steps]
    load = f"{tune.requests_per_host} requests at once for each host, {tune.repeats} runs each"
    rule = f"better by more than {tune.noise:.0%}, and nothing of the service level lost"
    head = f"{tune.name}: {tune.about}\n{tune.workload}, {load}; kept: {rule}"
    return f"{head}\n\n{columns([heads, *rows], left=heads)}"


def text(tuned: Tuned) -> str:
    """The figures of all trials, then why each step is kept or not."""
    rows = [("start", *_figures(tuned.start), tuned.begun_with)]
    rows += [(d.step, *_figures(d.after), d.outcome) for d in tuned.decisions if d.outcome != "skipped"]
    table = columns([HEADS, *rows], left=("", "service level"))
    return "\n\n".join((table, *(_decision(d) for d in tuned.decisions)))


def _figures(trial: Trial | None) -> tuple[str, ...]:
    if trial is None or not trial.figures:
        return ("–", "–", "–", "–", "–")
    told = (trial.figures.get(n) for n in ("tokens_per_s_per_gpu", "ttft_ms", "tpot_ms"))
    values = ("–" if v is None else f"{median_low(v):,.2f}" for v in told)
    return (str(trial.requests_at_once), *values, level(trial))


def level(trial: Trial) -> str:
    """The worst verdict on the service level; – where there is none."""
    verdicts = set(trial.limits.values())
    return next((v for v in ("FAIL", "CANNOT TELL", "PASS") if v in verdicts), "–")


def _decision(decision: Decision) -> str:
    lines = textwrap.wrap(f"{decision.outcome}: {decision.reason}", WIDTH - 2)
    return "\n".join((decision.step, *(f"  {line}" for line in lines)))


def markdown(tuned: Tuned, *, layout: str) -> str:
    """The report: what was chosen, by what, and each step with its hypothesis, change, figures and reason."""
    return "\n".join(_markdown(tuned, layout)) + "\n"


def _markdown(tuned: Tuned, layout: str) -> Iterator[str]:
    tune = tuned.tune
    yield f"# Tune {tune.name}"
    yield ""
    yield f"{tune.about} It began with layout {tuned.begun_with}; the one it ended in is {layout}."
    if tuned.known_from:
        yield f"Nothing was measured: {tuned.known_from}"
    load = f"workload {tune.workload}, {tune.requests_per_host} requests at once for each host of an instance"
    yield f"Load: {load}. Service level: {tuned.sla.name if tuned.sla else 'none'}."
    yield (
        f"A step is kept if its figure is better by more than {tune.noise:.0%}, or by more than what lies "
        "within the runs, and nothing of the service level is lost. Figures are medians of runs; times are "
        "means in ms."
    )
    yield ""
    yield "| step | outcome | at once | tok/s per GPU | TTFT | TPOT | service level |"
    yield "|---|---|---:|---:|---:|---:|---|"
    yield f"| start | | {' | '.join(_figures(tuned.start))} |"
    for decision in tuned.decisions:
        yield f"| {decision.step} | {decision.outcome} | {' | '.join(_figures(decision.after))} |"
    for decision in tuned.decisions:
        yield from _section(tune, decision)


def _section(tune: Tune, decision: Decision) -> Iterator[str]:
    step = tune.named(decision.step)
    yield ""
    yield f"## {step.id}: {decision.outcome}"
    yield ""
    yield f"- Expected: {step.hypothesis} ({step.known_from})."
    if decision.changes:
        yield f"- Changed: {', '.join(f'`{change}`' for change in decision.changes)}."
    yield f"- {decision.outcome.capitalize()}: {decision.reason}."
    for word, trial in (("Before", decision.before), ("After", decision.after)):
        if trial and trial.known_from:
            yield f"- {word}: {trial.known_from}."


def document(tuned: Tuned, *, layout: str) -> dict[str, Any]:
    """The same for programs."""
    return {
        "format": FORMAT,
        "tune": tuned.tune.name,
        "pool": tuned.tune.pool,
        "workload": tuned.tune.workload,
        "sla": tuned.sla.name if tuned.sla else "",
        "begun_with": tuned.begun_with,
        "layout": layout,
        "known_from": tuned.known_from,
        "kept": tuned.way.taken,
        "start": plain(tuned.start),
        "decisions": [_plain(tuned.tune, d) for d in tuned.decisions],
    }


def _plain(tune: Tune, decision: Decision) -> Json:
    step, told = tune.named(decision.step), plain(decision)
    assert isinstance(told, dict), "a decision has fields"
    return {**told, "hypothesis": step.hypothesis, "known_from": step.known_from, "figure": step.figure}
