"""Service: which instances serve, what they run and which are drained, by the hosts' answers; pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from launcher.health.state import api_urls, get, status
from launcher.model.deployment import Deployment, Drained, DrainedBy, Process
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.problem import LauncherError, Problem
from launcher.model.profile import Engine
from launcher.model.wish import Wanted
from launcher.resolve import resolve
from launcher.resolve.exchange import KvIdentity, identity_in
from launcher.steps import unit

DRAINED_PATH = "/etc/dsv32/drained.json"
DRAINED = Probe("read", (DRAINED_PATH, 65536))


@dataclass(frozen=True, slots=True)
class Service:
    """What serves at one moment."""

    serving: frozenset[str] = frozenset()
    """Instances all of whose processes run and answer."""
    engine_hosts: frozenset[str] = frozenset()
    """Hosts on which a process of an engine is active, whether or not it answers yet."""
    drained: tuple[Drained, ...] = ()
    """Instances that routers send no requests to."""
    identities: Mapping[str, KvIdentity] = field(default_factory=dict)
    """Instance → what its running processes told at their start that they need from the other side."""

    @property
    def stays_drained(self) -> tuple[Drained, ...]:
        """What an operator or a restart has drained: it stays so after a rollout."""
        return tuple(d for d in self.drained if d.by != "rollout")

    @property
    def left_drained(self) -> frozenset[str]:
        """Instances that a rollout has left drained: it was killed, or failed."""
        return frozenset(d.instance for d in self.drained if d.by == "rollout")

    @property
    def reached(self) -> frozenset[str]:
        """Instances that serve and get requests."""
        return self.serving - {d.instance for d in self.drained}


def probes(wanted: Wanted) -> dict[str, tuple[Probe, ...]]:
    """Host → what `service` needs to know of it."""
    asked: dict[str, dict[Probe, None]] = {}
    deployment, engine = wanted.deployment, wanted.wish.profile.engine
    for process in _processes(deployment):
        asked.setdefault(process.host, {}).update(dict.fromkeys(_process_probes(process, engine)))
    for host in deployment.routing_hosts if deployment else ():
        asked.setdefault(host, {})[DRAINED] = None
    return {host: tuple(questions) for host, questions in asked.items()}


def service(wanted: Wanted, answers: Mapping[str, Facts | Problem]) -> Service:
    """The service, by the answers to `probes`. A host that does not answer serves and drains nothing.

    LauncherError where a host's list of drained instances cannot be read.
    """
    engine = wanted.wish.profile.engine
    facts = {host: answer for host, answer in answers.items() if isinstance(answer, Facts)}
    up = {(p.instance, p.host): _is_up(p, engine, facts.get(p.host)) for p in _processes(wanted.deployment)}
    instances = wanted.deployment.instances if wanted.deployment else ()
    active = (p.host for p in _processes(wanted.deployment) if _active(p, facts.get(p.host)))
    return Service(
        serving=frozenset(i.name for i in instances if all(up[i.name, host] for host in i.hosts)),
        engine_hosts=frozenset(active),
        drained=_drained(wanted.deployment, facts),
        identities=dict(_identities(wanted.deployment, facts)),
    )


def with_drained(wanted: Wanted, drained: tuple[Drained, ...]) -> Wanted:
    """The same, with routers that send nothing to what is drained."""
    have = wanted.deployment.drained if wanted.deployment else ()
    return wanted if have == drained else resolve(wanted.wish, drained)


def _processes(deployment: Deployment | None) -> tuple[Process, ...]:
    return tuple(p for i in deployment.instances for p in i.processes) if deployment else ()


def _process_probes(process: Process, engine: Engine | None) -> tuple[Probe, ...]:
    path = engine.ready_path if engine else ""
    return (Probe("unit", (process.unit,)), *(get(url + path) for url in api_urls(process)))


def _active(process: Process, facts: Facts | None) -> bool:
    """Does systemd say that it runs?"""
    have = facts[Probe("unit", (process.unit,))] if facts else Unknown("not reached")
    return not isinstance(have, Unknown) and have["active"] == "active"


def _is_up(process: Process, engine: Engine | None, facts: Facts | None) -> bool:
    """It runs, and answers where it has to."""
    if facts is None:
        return False
    _, *pages = _process_probes(process, engine)
    return _active(process, facts) and all(status(facts[page]) == 200 for page in pages)


def _identities(
    deployment: Deployment | None, facts: Mapping[str, Facts]
) -> Iterator[tuple[str, KvIdentity]]:
    for process in _processes(deployment):
        have = facts[process.host][Probe("unit", (process.unit,))] if process.host in facts else None
        if isinstance(have, Mapping) and unit.runs(have) and have.get("note"):
            yield process.instance, identity_in(have["note"])


def _drained(deployment: Deployment | None, facts: Mapping[str, Facts]) -> tuple[Drained, ...]:
    """What any host that routes says is drained, by instance; of two who drained one, the first."""
    found: dict[str, Drained] = {}
    for host in sorted(deployment.routing_hosts & facts.keys()) if deployment else ():
        answer = facts[host][DRAINED]
        for entry in _entries(host, "" if isinstance(answer, Unknown) else answer.get("text", "")):
            known = found.get(entry.instance, entry)
            found[entry.instance] = min(known, entry, key=lambda d: d.when)
    return tuple(sorted(found.values(), key=lambda d: d.instance))


def _entries(host: str, text: str) -> Iterator[Drained]:
    try:
        for entry in json.loads(text or "[]"):
            words: dict[str, Any] = {k: str(v) for k, v in entry.items()}
            if words.get("by", "operator") not in get_args(DrainedBy):
                raise ValueError(words["by"])
            yield Drained(**words)
    except (ValueError, TypeError, AttributeError):
        what = f"{DRAINED_PATH} is not a list of drained instances"
        do = f"correct it, or remove it: ssh {host} rm {DRAINED_PATH}"
        raise LauncherError(Problem(what, host, do=do)) from None
