"""Live: tokens a second, TTFT, TPOT, queue and KV use out of two looks at a fleet; knows no transport."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from launcher.health.state import ProcessState, RankLoad

COUNTED = (
    *("prompt_tokens", "generation_tokens"),
    *("ttft_seconds", "ttft_count", "tpot_seconds", "tpot_count"),
)
"""Fields of RankLoad that only rise while a process lives."""


@dataclass(frozen=True, slots=True)
class Live:
    """What an instance, or a whole pool, does between two looks; rates are None where nothing is compared."""

    name: str
    pool: str
    prompt_tokens_per_s: float | None
    generation_tokens_per_s: float | None
    ttft_s: float | None
    """Mean of the requests whose first token came in between; None where none did."""
    tpot_s: float | None
    """Mean of the requests that ended in between; None where answers have one token, as at prefill."""
    kv_usage: float
    """Of the fullest rank, 0 to 1."""
    running: float
    waiting: float


def live(
    before: Iterable[ProcessState], now: Iterable[ProcessState], *, pools: Mapping[str, str], elapsed_s: float
) -> Iterator[Live]:
    """Each pool, and after it each instance of it; `pools`: instance → its pool.

    What was started anew in between has no rates, nor has its pool: its counters began again.
    """
    first = {(p.instance, p.host): p for p in before}
    looks = [(first.get((p.instance, p.host)), p) for p in now]
    for pool in dict.fromkeys(pools.values()):
        own = {
            name: [look for look in looks if look[1].instance == name]
            for name in pools
            if pools[name] == pool
        }
        yield _live(pool, pool, [look for some in own.values() for look in some], elapsed_s)
        yield from (_live(name, pool, some, elapsed_s) for name, some in own.items())


def _live(
    name: str, pool: str, looks: list[tuple[ProcessState | None, ProcessState]], elapsed_s: float
) -> Live:
    ranks = [rank for _, now in looks for rank in now.ranks]
    grown = _grown(looks)
    return Live(
        name=name,
        pool=pool,
        prompt_tokens_per_s=grown["prompt_tokens"] / elapsed_s if grown and elapsed_s > 0 else None,
        generation_tokens_per_s=grown["generation_tokens"] / elapsed_s if grown and elapsed_s > 0 else None,
        ttft_s=grown["ttft_seconds"] / grown["ttft_count"] if grown.get("ttft_count") else None,
        tpot_s=grown["tpot_seconds"] / grown["tpot_count"] if grown.get("tpot_seconds") else None,
        kv_usage=max((rank.kv_usage for rank in ranks), default=0.0),
        running=sum(rank.running for rank in ranks),
        waiting=sum(rank.waiting for rank in ranks),
    )


def _grown(looks: Iterable[tuple[ProcessState | None, ProcessState]]) -> dict[str, float]:
    """Word → how much it has grown over all ranks; empty where any cannot be compared."""
    found = dict.fromkeys(COUNTED, 0.0)
    for before, now in looks:
        if before is None or before.invocation != now.invocation:
            return {}
        first = {rank.rank: rank for rank in before.ranks}
        if first.keys() != {rank.rank for rank in now.ranks}:
            return {}
        for rank in now.ranks:
            for word in COUNTED:
                found[word] += _count(rank, word) - _count(first[rank.rank], word)
    return found if all(value >= 0 for value in found.values()) else {}


def _count(rank: RankLoad, word: str) -> float:
    return float(getattr(rank, word))
