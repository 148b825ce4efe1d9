"""Measured points as text: figures, counters, verdicts and what they mean; knows no terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from launcher.bench.measure import accepted, cached, in_flight, queue_s, rates, time_ms
from launcher.bench.search import Answer
from launcher.bench.told import judged_line, verdict_line
from launcher.cli.words import columns
from launcher.flows.bench import Searched
from launcher.flows.bench_run import Bench
from launcher.model.bench import Measured, Result, Target
from launcher.model.sla import LimitName, Statistic

HEADS = (
    "",
    "seed",
    "done",
    "s",
    "in flight",
    "req/s",
    "tok/s",
    "out tok/s",
    "TTFT",
    "P50",
    "P99",
    "TPOT",
    "P99",
    "ITL",
    "P99",
    "E2E",
    "P99",
)
TIMES: tuple[tuple[LimitName, Statistic], ...] = (
    ("ttft_ms", "mean"),
    ("ttft_ms", "p50"),
    ("ttft_ms", "p99"),
    ("tpot_ms", "mean"),
    ("tpot_ms", "p99"),
    ("itl_ms", "mean"),
    ("itl_ms", "p99"),
    ("e2e_ms", "mean"),
    ("e2e_ms", "p99"),
)
COUNTED = (
    "counters",
    "seed",
    "pool",
    "running",
    "queue s",
    "preempted",
    "KV moved",
    "failed",
    "cached",
    "MTP",
)


def text(bench: Bench, measured: Sequence[Measured]) -> str:
    """All of it, for people."""
    parts = [_head(bench), columns([HEADS, *_rows(measured)], left=("",))]
    parts += ["times in ms: mean, and percentiles of requests; tok/s: prompts and answers together"]
    parts += [columns([COUNTED, *_counted(measured)], left=("counters", "pool"))]
    parts += ["\n".join(_of_point(bench, m)) for m in measured]
    return "\n\n".join(parts)


def found(searched: Searched) -> str:
    """What a search came to, in a line or two."""
    answer, unit = searched.answer, "requests at once" if searched.axis == "concurrency" else "requests/s"
    if answer.highest is None:
        if answer.next_up is None:
            return "nothing was measured"
        return f"no {searched.axis} keeps it: {_next_up(answer, searched)}"
    sure = "confirmed by a longer run" if answer.confirmed else "not confirmed by a longer run"
    line = f"highest {searched.axis} that keeps it: {answer.highest:g} {unit}, {sure}"
    if answer.next_up is None:
        return f"{line}; no limit was met up to there"
    return f"{line}\nnext up: {_next_up(answer, searched)}"


def _head(bench: Bench) -> str:
    workload, target = bench.workload, bench.target
    load = f"{workload.input_tokens} + {workload.output_tokens} tokens"
    return f"{workload.name} ({load}) → {target.name}, {target.through}; client on {target.host}"


def _rows(measured: Sequence[Measured]) -> Iterator[tuple[str, ...]]:
    for m in measured:
        for index, result in enumerate(m.results):
            figures = result.figures
            yield (
                "" if index else str(m.point),
                str(result.seed),
                f"{result.completed}/{result.asked}",
                f"{figures.get('duration', 0):.1f}",
                f"{in_flight(result):.1f}",
                f"{figures.get('request_throughput', 0):.2f}",
                f"{figures.get('total_token_throughput', 0):.1f}",
                f"{figures.get('output_throughput', 0):.1f}",
                *(_ms(time_ms(result, name, of)) for name, of in TIMES),
            )


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _counted(measured: Sequence[Measured]) -> Iterator[tuple[str, ...]]:
    for m in measured:
        for index, result in enumerate(m.results):
            for at, (pool, counters) in enumerate(result.counters.items()):
                drafts = accepted(counters)
                yield (
                    "" if index or at else str(m.point),
                    "" if at else str(result.seed),
                    pool,
                    f"{counters.get('running_seconds', 0) / (result.figures.get('duration') or 1):.1f}",
                    f"{queue_s(counters):.3f}",
                    f"{counters.get('preemptions', 0):.0f}",
                    f"{counters.get('kv_bytes', 0) / 2**20:.1f} MiB in {counters.get('kv_transfers', 0):.0f}",
                    f"{counters.get('kv_failed', 0):.0f}",
                    f"{cached(counters):.1%}",
                    "–" if drafts is None else f"{drafts:.1%}",
                )


def _of_point(bench: Bench, measured: Measured) -> Iterator[str]:
    yield f"{measured.point}, {measured.point.prompts} prompts: {verdict_line(measured, bench.sla)}"
    for judged in measured.judgements:
        yield f"  {judged.verdict:<11}  {judged_line(judged)}"
    for doubt in measured.doubts:
        yield f"  doubt        {doubt}"
    for note in measured.notes:
        yield f"  note         {note}"
    for result in measured.results:
        yield from _of_result(result, bench.target)


def _of_result(result: Result, target: Target) -> Iterator[str]:
    told = [f"{rate.value:.1f} {rate.tokens}/s per {rate.over}" for rate in rates(result, target)]
    goodput = result.figures.get("request_goodput")
    told += [f"goodput {goodput:.2f} requests/s"] if goodput is not None else []
    told += [f"client {result.client_cpu_percent:.0f} % of a core"]
    yield f"  seed {result.seed:<7} {'; '.join(told)}"
    if result.path:
        yield f"               {result.path}"


def _next_up(answer: Answer, searched: Searched) -> str:
    next_up = answer.next_up
    assert next_up
    of = next(
        m
        for m in searched.measured
        if next_up.value == (m.point.rate if searched.axis == "rate" else m.point.concurrency)
        and m.verdict != "PASS"
    )
    reasons = [judged_line(j) for j in of.judgements if j.verdict == "FAIL"] or list(of.doubts)
    reasons = reasons or [judged_line(j) for j in of.judgements if j.verdict == "CANNOT TELL"]
    return f"{next_up.value:g}: {next_up.verdict}, {'; '.join(reasons)}"
