"""Sections of a report on what was served, and what engines, GPUs and NICs did meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from launcher.bench.measure import accepted, cached, queue_s
from launcher.bench.page import Section, Table, Word
from launcher.model.measurement import Measurement


def served(one: Measurement) -> Table:
    """The load as it arrived: tokens of a request, by the client's own count."""
    heads = ("point", "seed", "prompt tokens", "answer tokens", "cached", "s", "failed", "client CPU")
    return Table(heads, tuple(_load_rows(one)))


def engines(one: Measurement) -> tuple[Table, ...]:
    """Counters and where a request's time went, pool by pool."""
    counted = (
        "point",
        "seed",
        "pool",
        "preempted",
        "KV moved MiB",
        "in transfers",
        "failed",
        "cached",
        "MTP",
    )
    times = ("point", "seed", "pool", "queue ms", "prefill ms", "KV transfer ms", "decode ms")
    rows = [
        (str(m.point), r, pool, c) for m in one.points for r in m.results for pool, c in r.counters.items()
    ]
    return (
        Table(counted, tuple((at, str(r.seed), pool, *_counts(c)) for at, r, pool, c in rows)),
        Table(times, tuple((at, str(r.seed), pool, *_times(c)) for at, r, pool, c in rows)),
    )


SHARED = {"queued": "requests", "prompt_tokens": "prompt tokens", "generation_tokens": "answer tokens"}


def balance(one: Measurement) -> Table:
    """How evenly an instance's work was shared out among its ranks; no row for one rank alone."""
    heads = ("point", "seed", "instance", "what", "ranks", "least", "mean", "most", "most/mean", "busiest")
    return Table(heads, tuple(_balance_rows(one)))


def _balance_rows(one: Measurement) -> Iterator[tuple[str, ...]]:
    for m in one.points:
        for r in m.results:
            for name, ranks in sorted(r.ranks.items()):
                for word, said in SHARED.items():
                    own = {rank: counters[word] for rank, counters in ranks.items() if word in counters}
                    if len(own) > 1 and any(own.values()):
                        yield (str(m.point), str(r.seed), name, said, *_shares(own))


def _shares(own: Mapping[str, float]) -> tuple[str, ...]:
    mean, most = sum(own.values()) / len(own), max(own, key=lambda rank: own[rank])
    values = (f"{v:.0f}" for v in (min(own.values()), mean, own[most]))
    return (str(len(own)), *values, f"{own[most] / mean:.2f}", most)


def _load_rows(one: Measurement) -> Iterator[tuple[str, ...]]:
    for m in one.points:
        for r in m.results:
            done = max(r.completed, 1)
            shares = (f"{pool} {cached(counters):.1%}" for pool, counters in r.counters.items())
            yield (
                str(m.point),
                str(r.seed),
                f"{r.figures.get('total_input_tokens', 0.0) / done:.1f}",
                f"{r.figures.get('total_output_tokens', 0.0) / done:.1f}",
                ", ".join(shares) or "–",
                f"{r.figures.get('duration', 0.0):.1f}",
                str(r.asked - r.completed),
                f"{r.client_cpu_percent:.0f} %",
            )


def _counts(counters: Mapping[str, float]) -> tuple[str, ...]:
    drafts = accepted(counters)
    return (
        f"{counters.get('preemptions', 0.0):.0f}",
        f"{counters.get('kv_bytes', 0.0) / 2**20:.1f}",
        f"{counters.get('kv_transfers', 0.0):.0f}",
        f"{counters.get('kv_failed', 0.0):.0f}",
        f"{cached(counters):.1%}",
        "–" if drafts is None else f"{drafts:.1%}",
    )


def _times(counters: Mapping[str, float]) -> Iterator[str]:
    yield f"{1000 * queue_s(counters):.2f}"
    for seconds, count in (
        ("prefill_seconds", "queued"),
        ("kv_seconds", "kv_transfers"),
        ("decode_seconds", "queued"),
    ):
        times = counters.get(count, 0.0)
        yield f"{1000 * counters.get(seconds, 0.0) / times:.2f}" if times else "–"


def machines(one: Measurement, of: str) -> Section:
    """What exporters told of GPUs and NICs: over all runs of a point, device by device."""
    heads = ("host", "what", "device", "point", "before", "mean", "most", "after", "unit")
    rows = tuple(
        (t.host, t.series, t.device, str(m.point), *map(_number, (t.before, t.mean, t.most, t.after)), t.unit)
        for m in one.points
        for r in m.results
        for t in r.tracks
        if t.most
    )
    untold = dict.fromkeys(text for m in one.points for r in m.results for text in r.untold)
    words = tuple(Word(text) for text in untold)
    return Section(f"GPUs and NICs{of}", words, (Table(heads, rows),) if rows else ())


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
