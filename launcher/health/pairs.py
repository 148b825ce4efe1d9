"""Pair, Pairs: which prefill × decode pairs were seen to serve, judged by counters; knows no request."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from launcher.health.metrics import Reading
from launcher.model.deployment import Deployment
from launcher.model.inventory import ENGINE_POOLS
from launcher.model.profile import EnginePool


@dataclass(frozen=True, slots=True)
class Answering:
    """A process that answers requests, at one address or several."""

    instance: str
    host: str
    urls: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.instance}@{self.host}"


Readings: TypeAlias = Mapping[Answering, Reading]


@dataclass(frozen=True, slots=True)
class Pair:
    """A prefill process and a decode process that both answer: KV travels between their hosts."""

    prefill: Answering
    decode: Answering

    def __str__(self) -> str:
        return f"{self.prefill} → {self.decode}"


@dataclass(frozen=True, slots=True)
class Transfer:
    """What one request moved, by the decode side's own counters."""

    prompt_tokens: float
    kv_bytes: float
    direct: bool = False
    """Asked pair by pair, past the router, since the router's choices did not reach it."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """All pairs, and the transfers seen so far."""

    seen: Mapping[Pair, Transfer | None]

    @property
    def unseen(self) -> tuple[Pair, ...]:
        """The pairs still without a transfer."""
        return tuple(pair for pair, transfer in self.seen.items() if transfer is None)

    def with_seen(self, pair: Pair, transfer: Transfer) -> Pairs:
        """These pairs, one of them seen; the first sight of a pair is kept."""
        return self if self.seen[pair] else replace(self, seen={**self.seen, pair: transfer})


def all_pairs(deployment: Deployment, serving: Collection[str]) -> Pairs:
    """Every prefill process that answers × every decode process that answers, of the serving instances."""
    prefills, decodes = (
        [a for a in answering(deployment, pool) if a.instance in serving] for pool in ENGINE_POOLS
    )
    return Pairs({Pair(p, d): None for p in prefills for d in decodes})


def answering(deployment: Deployment, pool: EnginePool) -> tuple[Answering, ...]:
    """The processes of a pool that have API endpoints, in order."""
    return tuple(
        Answering(instance.name, process.host, urls)
        for instance in deployment.instances
        if instance.pool == pool
        for process in instance.processes
        if (urls := tuple(u for e in process.endpoints if e.name == "api" for u in e.urls()))
    )


def served(pairs: Pairs, before: Readings, after: Readings) -> tuple[Pair, Transfer] | None:
    """The pair that served the one request between two readings.

    None if counters of more than one process of a side moved (other traffic), or if no KV moved.
    """
    prefills = {p.prefill for p in pairs.seen if moved("prompt_tokens", p.prefill, before, after) > 0}
    decodes = {p.decode for p in pairs.seen if moved("kv_transfers", p.decode, before, after) > 0}
    if len(prefills) != 1 or len(decodes) != 1:
        return None
    decode = decodes.pop()
    return Pair(prefills.pop(), decode), transfer(decode, before, after)


def transfer(decode: Answering, before: Readings, after: Readings, *, direct: bool = False) -> Transfer:
    """What this decode process received between two readings."""
    return Transfer(
        prompt_tokens=moved("transferred_prompt_tokens", decode, before, after),
        kv_bytes=moved("kv_bytes", decode, before, after),
        direct=direct,
    )


def moved(word: str, process: Answering, before: Readings, after: Readings) -> float:
    """By how much a counter grew; a process that could not be read did not move."""
    if process not in before or process not in after:
        return 0.0
    return after[process].total(word) - before[process].total(word)
