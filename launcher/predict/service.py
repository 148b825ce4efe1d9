"""Load, Prediction: what prefill and decode instances do together under a load; knows no layout file."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from launcher.model.architecture import Architecture
from launcher.model.performance import Performance
from launcher.predict import decode, prefill
from launcher.predict.group import Group

HALVINGS = 60
"""Of an interval, by then below what a float tells apart."""
FULL = 0.95
"""Of what prefill can take: beyond it more requests only queue."""


@dataclass(frozen=True, slots=True)
class Side:
    """The instances of one pool, all alike."""

    group: Group
    instances: int
    most_requests: float = math.inf
    """That one data-parallel rank holds at once: max-num-seqs, or what its KV cache has room for."""

    @property
    def gpus(self) -> int:
        """Of all instances."""
        return self.group.gpus * self.instances

    @property
    def ranks(self) -> int:
        """Data-parallel ranks of all instances."""
        return self.group.data_parallel * self.instances


@dataclass(frozen=True, slots=True)
class Load:
    """Requests of one size: `rate` a second, or `concurrency` in flight at all times, or both as bounds."""

    input_tokens: int
    output_tokens: int
    concurrency: int = 0
    """0: unbounded."""
    rate: float = 0.0
    """Requests a second; 0: as fast as concurrency lets."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Steady state, by the model."""

    requests_per_s: float
    tokens_per_s: float
    """Prompt and output tokens."""
    prefill_per_gpu: float
    """Prompt and first tokens a second for each prefill GPU; 0 without such."""
    output_per_gpu: float
    """Output tokens a second for each decode GPU; 0 without such."""
    ttft_ms: float
    tpot_ms: float
    """0 where nothing is decoded."""
    in_decode: float
    """Requests of one decode rank."""
    limit: str
    """What keeps it from more."""


@dataclass(frozen=True, slots=True)
class Service:
    """Both sides, or one of them, of one model on one kind of GPU."""

    model: Architecture
    speed: Performance
    prefill: Side | None = None
    decode: Side | None = None

    def prompts_per_s(self, load: Load) -> float:
        """Requests a second that prefill can take; without it, any number."""
        if not self.prefill:
            return math.inf
        prompt = load.input_tokens
        tokens = prefill.tokens_per_s(self.prefill.group, self.model, self.speed, prompt=prompt)
        return tokens * self.prefill.instances / load.input_tokens

    def answers_per_s(self, load: Load, *, requests: float) -> float:
        """Requests a second that leave decode when each rank holds `requests`; without it, any number."""
        if not self.decode or load.output_tokens < 2:
            return math.inf
        answer_s = (load.output_tokens - 1) * self.tpot_ms(load, requests=requests) / 1e3
        return requests * self.decode.ranks / answer_s

    def tpot_ms(self, load: Load, *, requests: float) -> float:
        """Of each request, half of its answer written; 0 where nothing is decoded."""
        if not self.decode or load.output_tokens < 2:
            return 0.0
        context = load.input_tokens + load.output_tokens / 2
        # a step takes its time for one request, however rarely there is one
        requests = max(requests, 1.0)
        return decode.tpot_ms(self.decode.group, self.model, self.speed, requests=requests, context=context)

    def ttft_s(self, load: Load, rate: float) -> float:
        """Time in prefill at `rate` requests a second: half of a step under way, its own, the queue (M/D/c).

        Ranks of a group step together: the busier they are, the fuller the step that a prompt waits for and
        shares. Without decode, clients that wait keep `concurrency` requests in prefill (Little's law).
        """
        if not self.prefill:
            return 0.0
        group, ranks = self.prefill.group, self.prefill.ranks
        prompt = load.input_tokens
        alone = prefill.rank_s(group, self.model, self.speed, tokens=prompt, prompt=prompt)
        if load.concurrency and not self.decode:
            return max(alone, load.concurrency / rate)
        tokens = max(group.batched_tokens, prompt)
        full = prefill.rank_s(group, self.model, self.speed, tokens=tokens, prompt=prompt)
        busy = min(rate / self.prompts_per_s(load), 1 - 1e-9)
        queue = 0.5 * alone * _waits(ranks, busy) / (ranks * (1 - busy))
        return alone + busy * (1.5 * full - alone) + queue

    def in_decode(self, load: Load, rate: float) -> float:
        """Requests of one decode rank at `rate` requests a second, at most what a rank can hold."""
        if not self.decode or load.output_tokens < 2:
            return 0.0
        return _where(lambda held: self.answers_per_s(load, requests=held), rate, self.decode.most_requests)

    def in_flight(self, load: Load, rate: float) -> float:
        """Requests in the whole service at `rate` requests a second (Little's law)."""
        ranks = self.decode.ranks if self.decode else 0
        return rate * self.ttft_s(load, rate) + self.in_decode(load, rate) * ranks


def predict(service: Service, load: Load) -> Prediction:
    """The steady state under a load."""
    rate, limit = _most(service, load)
    if load.concurrency and service.in_flight(load, rate) > load.concurrency * (1 + 1e-6):
        rate = _where(lambda r: service.in_flight(load, r), load.concurrency, rate)
        full = rate > FULL * service.prompts_per_s(load)
        limit = f"prefill, {load.concurrency} at once" if full else f"{load.concurrency} requests in flight"
    requests = service.in_decode(load, rate)
    gpus = [side.gpus if side else 0 for side in (service.prefill, service.decode)]
    return Prediction(
        requests_per_s=rate,
        tokens_per_s=rate * (load.input_tokens + load.output_tokens),
        prefill_per_gpu=rate * (load.input_tokens + 1) / gpus[0] if gpus[0] else 0.0,
        output_per_gpu=rate * load.output_tokens / gpus[1] if gpus[1] else 0.0,
        ttft_ms=service.ttft_s(load, rate) * 1e3,
        tpot_ms=service.tpot_ms(load, requests=requests),
        in_decode=requests,
        limit=limit,
    )


def _most(service: Service, load: Load) -> tuple[float, str]:
    """The highest rate that the load asks for and both sides can take, and what it is bound by."""
    able, limit = service.prompts_per_s(load), "prefill"
    if service.decode:
        decoded = service.answers_per_s(load, requests=service.decode.most_requests)
        if decoded < able:
            able, limit = decoded, f"decode, {service.decode.most_requests:g} requests a rank"
    if load.rate and load.rate < able:
        return load.rate, f"{load.rate:g} requests a second offered"
    return able, limit


def _where(rising: Callable[[float], float], wanted: float, most: float) -> float:
    """Where between 0 and `most` a rising function reaches `wanted`."""
    low, high = 0.0, most
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if rising(middle) < wanted:
            low = middle
        else:
            high = middle
    return high


def _waits(ranks: int, busy: float) -> float:
    """The share of requests that must wait, all ranks being busy (Erlang C)."""
    offered = ranks * busy
    blocked = 1.0
    for n in range(1, ranks + 1):
        blocked = offered * blocked / (n + offered * blocked)
    return blocked / (1 - busy * (1 - blocked))
