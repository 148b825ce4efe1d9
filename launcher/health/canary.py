"""canary: one real generation for each prefill × decode pair, and its KV transfer seen in the counters.

Engines of a pool that stands alone are asked one by one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from launcher.health.completion import completion, prefill_first, send, wrong
from launcher.health.hands import Hands, look_within_s
from launcher.health.metrics import read
from launcher.health.pairs import (
    Answering,
    Pair,
    Pairs,
    Readings,
    Transfer,
    all_pairs,
    answering,
    served,
    transfer,
)
from launcher.health.state import get, status
from launcher.model.deployment import Deployment
from launcher.model.facts import Facts, Probe
from launcher.model.finding import Finding, Severity
from launcher.model.inventory import ENGINE_POOLS
from launcher.model.problem import Problem
from launcher.model.profile import Engine
from launcher.model.run import Event, Listener
from launcher.model.wish import Wanted
from launcher.wait import CLOCK, Clock, wait_for

TURNS_PER_PAIR = 2
"""A round robin meets all pairs it ever meets in one turn a pair; other policies get as many again."""
SETTLE_WITHIN_S = 5.0
"""An engine publishes its counters up to a second after the answer has left."""
SETTLE_EVERY_S = 0.3


@dataclass(frozen=True, slots=True)
class Canary:
    """What all requests of one canary have in common."""

    fleet: Hands
    deployment: Deployment
    engine: Engine
    nonce: str
    clock: Clock

    def body(self, turn: int) -> dict[str, object]:
        """The request of one turn."""
        return completion(self.deployment.served_name, nonce=self.nonce, turn=turn)


def canary(
    fleet: Hands,
    wanted: Wanted,
    listener: Listener,
    *,
    serving: Collection[str],
    nonce: str,
    clock: Clock = CLOCK,
) -> tuple[Finding, ...]:
    """A Finding for each pair: served through the router, served when asked directly, or the Problem. Without
    a router users ask the instances themselves: a Finding for each process that answers.

    `serving` are the instances that are up: the others have been reported already. `nonce` differs from run
    to run, so that no prefix cache answers instead of a prefill.
    """
    engine, deployment = wanted.wish.profile.engine, wanted.deployment
    assert engine, "what serves has an engine"
    assert deployment, "a canary needs something that serves"
    it = Canary(fleet, deployment, engine, nonce, clock)
    return told(by_pairs(it, serving) if deployment.routers else by_process(it, serving), listener)


def canary_past_router(
    fleet: Hands,
    wanted: Wanted,
    listener: Listener,
    *,
    of: Collection[str],
    serving: Collection[str],
    nonce: str,
    clock: Clock = CLOCK,
) -> tuple[Finding, ...]:
    """The same for the pairs that hold an instance of `of`, each asked directly: before users reach these."""
    engine, deployment = wanted.wish.profile.engine, wanted.deployment
    assert engine, "what serves has an engine"
    assert deployment, "a canary needs something that serves"
    it = Canary(fleet, deployment, engine, nonce, clock)
    if not deployment.routers:
        return told(by_process(it, of), listener)
    pairs = all_pairs(deployment, {*serving, *of}).seen
    ours = (p for p in pairs if p.prefill.instance in of or p.decode.instance in of)
    return told(tuple(ask_directly(it, pair, turn) for turn, pair in enumerate(ours)), listener)


def told(findings: tuple[Finding, ...], listener: Listener) -> tuple[Finding, ...]:
    """These findings, and an event for each."""
    for finding in findings:
        listener(
            Event("finding", finding.text, subject=finding.subject, data={"severity": finding.severity.name})
        )
    return findings


def by_pairs(it: Canary, serving: Collection[str]) -> tuple[Finding, ...]:
    """Each pair through the router; those that its choices did not reach, past it."""
    pairs, refused = through_router(it, all_pairs(it.deployment, serving))
    if refused:
        return (Finding(Severity.ERROR, "front", refused.what, refused),)
    turns = enumerate(pairs.seen.items(), start=TURNS_PER_PAIR * len(pairs.seen))
    return tuple(seen(p, t) if t else ask_directly(it, p, turn) for turn, (p, t) in turns)


def by_process(it: Canary, serving: Collection[str]) -> tuple[Finding, ...]:
    """Each process that answers, at each of its addresses."""
    processes = (a for pool in ENGINE_POOLS for a in answering(it.deployment, pool) if a.instance in serving)
    turns = enumerate((process, url) for process in processes for url in process.urls)
    return tuple(ask_alone(it, process, url, turn) for turn, (process, url) in turns)


def ask_alone(it: Canary, process: Answering, url: str, turn: int) -> Finding:
    """One request to one address."""
    problem = wrong(send(it.fleet, process.host, url, it.body(turn)), url, process.host)
    if problem:
        return Finding(Severity.ERROR, str(process), problem.what, problem)
    return Finding(Severity.OK, str(process), f"served at {url}")


def through_router(it: Canary, pairs: Pairs) -> tuple[Pairs, Problem | None]:
    """Ask the front until every pair was seen or the turns are over; a request that fails ends it."""
    front = it.deployment.fronts[0]
    # as users ask, unless that takes a key or a certificate
    url = front.own_url if front.settings.closed else front.url
    before = readings(it)
    for turn in range(TURNS_PER_PAIR * len(pairs.seen)):
        if not pairs.unseen:
            break
        reply = send(it.fleet, front.host, url, it.body(turn))
        if problem := wrong(reply, url, front.host):
            return pairs, problem
        before, moved = settle(it, pairs, before)
        if not moved:
            break  # other traffic, or a decode that needed no prefill: asking directly tells which
        pairs = pairs.with_seen(*moved)
    return pairs, None


def settle(it: Canary, pairs: Pairs, before: Readings) -> tuple[Readings, tuple[Pair, Transfer] | None]:
    """The readings after a request, once they show which pair served it or the time for that is over."""

    def look() -> tuple[Readings, tuple[Pair, Transfer] | None]:
        after = readings(it)
        return after, served(pairs, before, after)

    return wait_for(
        look,
        lambda now: now[1] is not None,
        every_s=SETTLE_EVERY_S,
        within_s=SETTLE_WITHIN_S,
        clock=it.clock,
    ).answer


def readings(it: Canary) -> Readings:
    """The counters of every answering process: one request a host, all hosts at once."""
    sides = [*answering(it.deployment, "prefill"), *answering(it.deployment, "decode")]
    pages = {side: tuple(get(url + "/metrics") for url in side.urls) for side in sides}
    asked: dict[str, tuple[Probe, ...]] = {}
    for side in sides:
        asked[side.host] = asked.get(side.host, ()) + pages[side]
    facts = it.fleet.ask(asked, within_s=look_within_s)
    texts = {side: bodies(facts[side.host], pages[side]) for side in sides}
    return {side: read("".join(pages), it.engine.metrics) for side, pages in texts.items() if pages}


def bodies(facts: Facts | Problem, pages: Iterable[Probe]) -> tuple[str, ...]:
    """The bodies of the pages that answered."""
    answers = () if isinstance(facts, Problem) else tuple(facts[p] for p in pages)
    return tuple(a["body"] for a in answers if status(a) == 200)


def ask_directly(it: Canary, pair: Pair, turn: int) -> Finding:
    """Be the router for one request: prefill first, then decode with the transfer parameters it gave back."""
    before = readings(it)
    prefill, decode, body = pair.prefill, pair.decode, it.body(turn)
    request_id = f"canary-{it.nonce}-{turn}"
    first = {**body, "max_tokens": 1, "kv_transfer_params": prefill_first}
    reply = send(it.fleet, prefill.host, prefill.urls[0], first, request_id=request_id)
    problem = wrong(reply, prefill.urls[0], prefill.host)
    if not problem:
        second = {**body, "kv_transfer_params": json.loads(reply["body"]).get("kv_transfer_params")}
        reply = send(it.fleet, decode.host, decode.urls[0], second, request_id=request_id)
        problem = wrong(reply, decode.urls[0], decode.host)
    if problem:
        return Finding(Severity.ERROR, str(pair), problem.what, problem)
    after, _ = settle(it, Pairs({pair: None}), before)
    return seen(pair, transfer(decode, before, after, direct=True))


def seen(pair: Pair, moved: Transfer) -> Finding:
    """The verdict on a pair that answered: good if KV really came over."""
    how = "asked directly, past the router" if moved.direct else "through the router"
    if moved.kv_bytes > 0:
        amount = f"{moved.kv_bytes:,.0f} bytes of KV moved, for {moved.prompt_tokens:.0f} prompt tokens"
        return Finding(Severity.OK, str(pair), f"served {how}: {amount}")
    what = f"{pair} answered {how}, but no KV moved: decode computed the prompt itself"
    where = f"{pair.decode.host}, {pair.decode.urls[0]}/metrics"
    return Finding(
        Severity.ERROR, str(pair), what, Problem(what, where, "", f"dsv32-launch logs {pair.decode.instance}")
    )
