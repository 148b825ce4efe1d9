"""The client's JSON and what its host told → Result, and the figures that people ask for; knows no limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from launcher.model.bench import Counters, Result, Sides
from launcher.model.sla import LimitName, Statistic

TIMES: Mapping[LimitName, str] = {"ttft_ms": "ttft", "tpot_ms": "tpot", "itl_ms": "itl", "e2e_ms": "e2el"}
"""Our word for a time → the client's."""
DEFINITIONS = """\
TTFT: from the moment the client sends a request to the first token that it sees; what waits for its turn
      under a concurrency was not sent.
TPOT: (E2E − TTFT) / (tokens of the answer − 1), for each request; answers of one token have none.
ITL:  between two chunks of an answer; a chunk may hold several tokens (MTP), so it is not TPOT.
E2E:  from the moment a request is sent to the last token of its answer.
tok/s: tokens of all completed requests over the time from the first request to the last answer; prompts and
      answers together unless it says otherwise, tokens of an answer counted by the client's tokenizer.
in flight: requests under way on average: completed a second times mean E2E.
goodput: requests a second that keep every limit of the service level which one request can keep.
tok/s of a user: 1000 / mean TPOT. tok/s over: tokens a second by GPU or instance of a pool, which it names.
done: requests that were answered, of those sent. req/s: these over the same time as tok/s.
Of the engines' own counters, over a run: cached: share of prompt tokens that prefix caches answered; MTP:
      share of drafted tokens that were kept; preempted: times that a request lost its KV; queue, prefill,
      decode: mean of a request; KV transfer: mean of a transfer, as the side that reads tells it.
before, mean, most, after: of the looks at an exporter.
n: requests that were answered, run by run. ±: half of what lies between the runs' lowest and highest figure.
Means and percentiles are those of `vllm bench serve`, a run's own; of several runs the lower median is held
against the limit, and all runs must agree."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Tokens a second over GPUs, and which of both."""

    value: float
    tokens: str
    over: str


def result_of(
    document: Mapping[str, Any], *, seed: int, cpu_percent: float, counters: Counters, **more: Any
) -> Result:
    """Whatever release wrote the document: its numbers, by their names there."""
    figures = {
        k: float(v) for k, v in document.items() if isinstance(v, (int, float)) and not isinstance(v, bool)
    }
    date = str(document.get("date", ""))
    asked = int(figures.get("num_prompts", 0))
    return Result(seed, asked, figures, cpu_percent, counters, date=date, **more)


def time_ms(result: Result, name: LimitName, of: Statistic) -> float | None:
    """A time of the client's table; None where it has none: TPOT and ITL of answers of one token."""
    figures = result.figures
    if name in ("tpot_ms", "itl_ms") and figures.get("total_output_tokens", 0) <= result.completed:
        return None
    if not result.completed:
        return None
    half = figures.get(f"median_{TIMES[name]}_ms") if of == "p50" else None
    return figures.get(f"{of}_{TIMES[name]}_ms", half)


def figure(result: Result, sides: Sides, name: LimitName, of: Statistic) -> float | None:
    """What a limit is held against; None where there is no such figure."""
    if name in TIMES:
        return time_ms(result, name, of)
    total = result.figures.get("total_token_throughput")
    if name == "tokens_per_s":
        return total
    gpus = sides.gpus.get("prefill", 0)
    return total / gpus if total is not None and gpus else None


def rates(result: Result, sides: Sides) -> Iterator[Rate]:
    """Tokens a second of each pool, by GPU; by instance where there are none."""
    for pool, gpus in sides.gpus.items():
        tokens = "output tokens" if pool == "decode" else "tokens"
        value = result.figures.get("output_throughput" if pool == "decode" else "total_token_throughput", 0.0)
        count = sides.count(pool)
        over = f"{pool} GPU, of {gpus}" if gpus else f"{pool} instance, of {count}; no GPUs"
        yield Rate(value / (gpus or count), tokens, over)


def borne_per_s(result: Result) -> float:
    """Requests a second that got through, where a rate was asked for.

    The client spreads its sends over prompts / rate seconds; the run lasts an answer longer.
    """
    lasts_s = result.figures.get("duration", 0.0) - result.figures.get("mean_e2el_ms", 0.0) / 1000
    return result.asked / lasts_s if lasts_s > 0 else float("inf")


def in_flight(result: Result) -> float:
    """Requests under way on average, by Little's law; the client's own maximum counts whole seconds."""
    figures = result.figures
    return figures.get("request_throughput", 0.0) * figures.get("mean_e2el_ms", 0.0) / 1000


def queue_s(counters: Mapping[str, float]) -> float:
    """Seconds that a request waited in a pool's engines on average."""
    return counters.get("queue_seconds", 0.0) / max(counters.get("queued", 0.0), 1.0)


def cached(counters: Mapping[str, float]) -> float:
    """Share of prompt tokens that the prefix caches of a pool answered."""
    return counters.get("prefix_hits", 0.0) / max(counters.get("prefix_tokens", 0.0), 1.0)


def arrived(counters: Mapping[str, float]) -> float | None:
    """Tokens of a prompt by the engines' own count, on average; None where they counted none."""
    requests = counters.get("queued", 0.0)
    return counters.get("prompt_tokens", 0.0) / requests if requests else None


def accepted(counters: Mapping[str, float]) -> float | None:
    """Share of drafted tokens that were right; None without drafts."""
    drafted = counters.get("draft_tokens", 0.0)
    return counters.get("accepted_tokens", 0.0) / drafted if drafted else None
