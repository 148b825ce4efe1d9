"""ProcessState, RouterState, FrontState: what serves now, out of one host's answers; knows no transport."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from launcher.health.guard import GuardWord, guard_probe, guard_word
from launcher.health.metrics import Reading, by_label, read
from launcher.model.deployment import Front, Process, RouterProcess
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.profile import Engine, RouterKind

answer_within_s = 5
# rpc: where an instance's processes find each other, closed once they have (seen with vLLM 0.32); guard: UDP
not_listening = ("rpc", "guard")
# names in its first line which of its two routers a host's front sends users to
chosen = Probe("read", ("/etc/dsv32/routers.cfg", 4096))


@dataclass(frozen=True, slots=True)
class RankLoad:
    """What one data-parallel rank does now, and has done since its start."""

    rank: str
    running: float
    waiting: float
    kv_usage: float
    """0 to 1."""
    prompt_tokens: float
    generation_tokens: float
    transferred_prompt_tokens: float
    """Prompt tokens whose KV came from a prefill instance."""
    ttft_seconds: float = 0.0
    """Seconds to the first token, of all requests that had one, and how many these were."""
    ttft_count: float = 0.0
    tpot_seconds: float = 0.0
    """Seconds for a token after the first, each request's mean, and how many requests have ended."""
    tpot_count: float = 0.0


@dataclass(frozen=True, slots=True)
class ProcessState:
    """One engine process as its host sees it."""

    instance: str
    host: str
    unit: str
    active: str
    """systemd's word; `unknown` where the host did not answer."""
    since_s: float
    """Epoch seconds; 0 if never started."""
    ports: Mapping[str, bool]
    """`api 8000` → whether anything listens there."""
    healthy: bool | None
    """Every API endpoint answers; None for a headless process."""
    ranks: tuple[RankLoad, ...]
    urls: tuple[str, ...] = ()
    """Where it answers requests."""
    invocation: str = ""
    """systemd's id of its present or last start."""
    note: str = ""
    """Why it is not up: the host's silence, or the first error line."""
    guard: GuardWord | None = None
    """What its host's guard says; None where it says nothing."""

    @property
    def up(self) -> bool:
        """Runs, and answers where it has to."""
        return self.active == "active" and self.healthy is not False


@dataclass(frozen=True, slots=True)
class RouterState:
    """One of the two routers of a host."""

    host: str
    unit: str
    slot: str
    active: str
    reached: bool
    """Users reach this one; the other one stands by."""
    ready: bool
    pools: Mapping[str, tuple[int, int]]
    """Pool → its workers that the router finds healthy, and all of them."""
    workers: Mapping[str, bool]
    """API address → whether the router finds it healthy."""
    note: str = ""

    @property
    def up(self) -> bool:
        """It runs and has someone to send requests to."""
        return self.active == "active" and self.ready


@dataclass(frozen=True, slots=True)
class FrontState:
    """The front of one host."""

    host: str
    unit: str
    active: str
    url: str
    answers: bool
    """Asked for the router's readiness, it passes on a good answer, also at the address that fronts share."""
    holds: bool | None = None
    """Its host has that address now; None where there is none, or it did not answer."""

    @property
    def up(self) -> bool:
        """It runs and answers."""
        return self.active == "active" and self.answers


def get(url: str) -> Probe:
    """A GET request from the host itself."""
    return Probe("http", ("GET", url, "", (), answer_within_s))


def process_questions(process: Process, engine: Engine) -> tuple[Probe, ...]:
    """All that one look at a process asks its host."""
    pages = (url + path for url in api_urls(process) for path in (engine.ready_path, "/metrics"))
    unit, word = Probe("unit", (process.unit,)), guard_probe(process.instance)
    return (unit, word, Probe("listen"), *(get(page) for page in pages))


def router_questions(router: RouterProcess) -> tuple[Probe, ...]:
    """All that one look at a router asks its host."""
    return (Probe("unit", (router.unit,)), chosen, *(get(page) for page in router_pages(router)))


def router_pages(router: RouterProcess) -> tuple[str, str]:
    """Where the router says whether it is ready, and its metrics."""
    own, metrics = (router.endpoint(n).urls()[0] for n in ("router", "router-metrics"))
    return own + router.ready_path, metrics + "/metrics"


def front_questions(front: Front, kind: RouterKind) -> tuple[Probe, ...]:
    """All that one look at a front asks its host."""
    shared = (get(front.url + kind.ready_path), holder(front)) if front.shared else ()
    return (Probe("unit", (front.unit,)), get(front.own_url + kind.ready_path), *shared)


def holder(front: Front) -> Probe:
    """Asks a host whether it has the address that fronts share."""
    return Probe("command", (("ip", "-o", "address", "show", "to", front.shared), answer_within_s))


def api_urls(process: Process) -> tuple[str, ...]:
    """Every address at which a process answers requests."""
    return tuple(url for e in process.endpoints if e.name == "api" for url in e.urls())


def process_state(process: Process, facts: Facts, engine: Engine) -> ProcessState:
    """What the answers say about a process."""
    unit = facts[Probe("unit", (process.unit,))]
    if isinstance(unit, Unknown):
        return ProcessState(
            process.instance, process.host, process.unit, "unknown", 0, {}, None, (), note=unit.reason
        )
    listening = facts[Probe("listen")]
    open_ports = set() if isinstance(listening, Unknown) else {entry["port"] for entry in listening}
    healthy = [status(facts[get(url + engine.ready_path)]) == 200 for url in api_urls(process)]
    return ProcessState(
        instance=process.instance,
        host=process.host,
        unit=process.unit,
        active=unit["active"],
        since_s=unit["since"],
        ports={
            f"{e.name} {e.port + i}": e.port + i in open_ports
            for e in process.endpoints
            if e.name not in not_listening
            for i in range(e.count)
        },
        healthy=all(healthy) if healthy else None,
        ranks=loads(process, facts, engine),
        urls=api_urls(process),
        invocation=unit["invocation"],
        guard=guard_word(facts[guard_probe(process.instance)]),
    )


def loads(process: Process, facts: Facts, engine: Engine) -> tuple[RankLoad, ...]:
    """The load of each rank that the process's endpoints tell of: one endpoint a rank, or one for many."""
    urls = api_urls(process)
    found: dict[str, RankLoad] = {}
    for index, url in enumerate(urls):
        answer = facts[get(url + "/metrics")]
        if status(answer) != 200:
            continue
        reading = read(answer["body"], engine.metrics)
        for rank in reading.ranks("running"):
            name = str(process.ranks[index].index) if len(urls) == len(process.ranks) else rank
            found[name] = load(name, rank, reading)
    return tuple(found.values())


def load(name: str, rank: str, reading: Reading) -> RankLoad:
    """One rank's numbers of a reading."""

    def value(word: str) -> float:
        return reading.ranks(word).get(rank, 0.0)

    return RankLoad(
        name,
        value("running"),
        value("waiting"),
        value("kv_usage"),
        value("prompt_tokens"),
        value("generation_tokens"),
        value("transferred_prompt_tokens"),
        ttft_seconds=value("ttft_seconds"),
        ttft_count=value("ttft_count"),
        tpot_seconds=value("tpot_seconds"),
        tpot_count=value("tpot_count"),
    )


def router_state(router: RouterProcess, facts: Facts, kind: RouterKind) -> RouterState:
    """What the answers say about a router."""
    unit = facts[Probe("unit", (router.unit,))]
    told = facts[chosen]
    ready, metrics = (facts[get(page)] for page in router_pages(router))
    text = "" if isinstance(told, Unknown) else told.get("text", "")
    return RouterState(
        host=router.host,
        unit=router.unit,
        slot=router.slot,
        active="unknown" if isinstance(unit, Unknown) else unit["active"],
        reached=text.startswith(f"# users reach router {router.slot}\n"),
        ready=status(ready) == 200,
        pools=healthy_of_all(ready),
        workers=workers(metrics, kind),
        note=unit.reason if isinstance(unit, Unknown) else "",
    )


def front_state(front: Front, facts: Facts, kind: RouterKind) -> FrontState:
    """What the answers say about a front."""
    unit, own, *shared = (facts[question] for question in front_questions(front, kind))
    active = "unknown" if isinstance(unit, Unknown) else unit["active"]
    # another certificate than the launcher trusts says nothing against it
    pages = [own, *(shared[:1] if not front.settings.certificate else ())]
    told = shared[1] if shared else None
    return FrontState(
        front.host,
        front.unit,
        active,
        front.url,
        answers=all(status(page) == 200 for page in pages),
        holds=bool(told["stdout"].strip()) if isinstance(told, dict) else None,
    )


def healthy_of_all(answer: Any) -> Mapping[str, tuple[int, int]]:
    """Pool → healthy and total, as the router's readiness answer has them."""
    try:
        told = json.loads(answer["body"])
    except (TypeError, KeyError, ValueError):
        return {}
    if not isinstance(told, dict):
        return {}
    return {
        p: (told[p]["healthy"], told[p]["total"])
        for p in ("prefill", "decode")
        if isinstance(told.get(p), dict)
    }


def workers(answer: Any, kind: RouterKind) -> Mapping[str, bool]:
    """API address → healthy, as the router's metrics have them."""
    if status(answer) != 200 or "worker_health" not in kind.metrics:
        return {}
    health = by_label(answer["body"], name=kind.metrics["worker_health"], label="worker")
    return {url: value == 1 for url, value in health.items()}


def status(answer: Any) -> int:
    """The HTTP status of an answer; 0 where there was none."""
    return int(answer.get("status") or 0) if isinstance(answer, dict) else 0
