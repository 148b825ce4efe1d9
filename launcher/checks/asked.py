"""Asked: a check as it is asked of one host, with all names filled in; knows no answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from launcher.model.check import Check, Expectation, Question
from launcher.model.deployment import Deployment, Process
from launcher.model.facts import Probe
from launcher.model.inventory import Host
from launcher.model.problem import InputError, Problem
from launcher.model.wish import Wanted
from launcher.resolve.expand import shared_values
from launcher.resolve.ports import weights_endpoints
from launcher.resolve.templates import compiled, is_template

MOST_BYTES = 1 << 16
"""Of one file; what a kernel or a driver tells of itself is a few kB."""
PEERS_WITHIN_S = 1.5
"""A kernel asks again after a second: one packet that was lost is no closed port."""
GROWS_S = 2.0
GPU = "gpu"
UP = "dsv32-launch up {{ inventory.path }}"
"""The remedy of what a role makes so."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A check for one host, or for one engine process on it."""

    check: Check
    host: str
    subject: str
    """The process's unit; empty: the host."""
    question: Question
    probe: Probe | None
    """None: there is nobody to ask about, as for peers in a fleet of one; or no probe is needed."""
    read: str
    expect: Expectation
    remedy: str
    runs: tuple[Probe, ...] = ()
    """The host's engine units, where the check is for idle hosts only."""

    @property
    def probes(self) -> tuple[Probe, ...]:
        """All it has to ask."""
        return (*((self.probe,) if self.probe else ()), *self.runs)


def asked_of(checks: Iterable[Check], wanted: Wanted, hosts: Iterable[str]) -> tuple[Asked, ...]:
    """These checks for those of these hosts that they are for. InputError where a name leads nowhere."""
    values = dict(shared_values(wanted.wish, wanted.deployment))
    names = tuple(hosts)
    problems: dict[Problem, None] = {}
    found: list[Asked] = []
    for check in checks:
        if not _is_for_fleet(check, wanted):
            continue
        named = is_template(str((check.ask, check.expect)))
        for name in names:
            host = wanted.wish.inventory.hosts[name]
            if check.pools and not set(check.pools) & _pools_of(name, wanted):
                continue
            try:
                found.extend(_for_host(check, host, wanted, values, named=named))
            except InputError as error:
                problems.update(dict.fromkeys(error.problems))
    if problems:
        raise InputError(*problems)
    return tuple(found)


def _is_for_fleet(check: Check, wanted: Wanted) -> bool:
    hardware = wanted.wish.profile.hardware
    if check.hardware:
        has = {hardware.name, *([GPU] if hardware.gpus_per_host else [])} if hardware else set()
        if not has & set(check.hardware):
            return False
    return not check.roles or bool({role.name for role in wanted.wish.roles} & set(check.roles))


def _pools_of(host: str, wanted: Wanted) -> set[str]:
    return {name for name, pool in wanted.wish.inventory.pools.items() if host in pool.hosts}


def _for_host(
    check: Check, host: Host, wanted: Wanted, values: Mapping[str, object], *, named: bool
) -> Iterator[Asked]:
    """`named`: its question or its expectation holds names; most do not, and hosts are many."""
    deployment = wanted.deployment
    processes = deployment.processes_on(host.name) if deployment else ()
    made = {role.name for role in wanted.wish.roles} & set(check.made_by)
    subjects: tuple[Process | None, ...] = processes if check.each == "process" else (None,)
    runs = tuple(Probe("unit", (p.unit,)) for p in processes) if check.idle else ()
    for process in subjects:
        known = {**values, "host": host, **({"process": process} if process else {})}
        if check.where is not None and not filled(check.where, check, known).strip():
            continue
        question = filled_question(check, known) if named else question_of(check)
        yield Asked(
            check=check,
            host=host.name,
            subject=process.unit if process else "",
            question=question,
            probe=probe_of(question, host, wanted),
            read=filled(check.read, check, known),
            expect=filled_expectation(check, known) if named else check.expect or Expectation(),
            remedy=filled(UP if made else check.remedy, check, known),
            runs=runs,
        )


def question_of(check: Check) -> Question:
    """Its question as it is written."""
    assert isinstance(check.ask, Question), "load puts the named one in"
    return check.ask


def filled(text: str, check: Check, values: Mapping[str, object]) -> str:
    """A text of a check with its names filled in."""
    return compiled(text, *_place(check.source)).render(values) if is_template(text) else text


@cache
def _place(source: str) -> tuple[str, int]:
    path, _, line = source.rpartition(":")
    return path, int(line)


def filled_question(check: Check, values: Mapping[str, object]) -> Question:
    """Its question with all names filled in."""
    ask = question_of(check)
    return replace(
        ask,
        command=tuple(filled(word, check, values) for word in ask.command),
        file=filled(ask.file, check, values),
        names=filled(ask.names, check, values),
        environment=filled(ask.environment, check, values),
        package=filled(ask.package, check, values),
        unit=filled(ask.unit, check, values),
        page=filled(ask.page, check, values),
        disk=filled(ask.disk, check, values),
        shards=filled(ask.shards, check, values),
    )


def filled_expectation(check: Check, values: Mapping[str, object]) -> Expectation:
    """Its expectation with all names filled in; an empty one where it only compares hosts."""
    expect = check.expect or Expectation()

    def text(word: str | None) -> str | None:
        return None if word is None else filled(word, check, values)

    return Expectation(
        equals=text(expect.equals),
        one_of=tuple(filled(word, check, values) for word in expect.one_of),
        at_least=text(expect.at_least),
        at_most=text(expect.at_most),
        release_at_least=text(expect.release_at_least),
        matches=text(expect.matches),
        lacks=text(expect.lacks),
        none=expect.none,
        like=expect.like,
        count=text(expect.count),
        count_at_least=text(expect.count_at_least),
    )


def probe_of(question: Question, host: Host, wanted: Wanted) -> Probe | None:
    """What the agent is asked; None where the answer comes with any other, or nobody is there to reach."""
    if question.over:
        return Probe("over", (question.command, question.over, question.within_s))
    if question.command:
        return Probe("command", (question.command, question.within_s))
    if question.imports:
        return Probe("imports", (question.environment, question.imports, question.within_s))
    if question.grows:
        return Probe("grown", (question.grows, GROWS_S))
    if question.packages:
        return Probe("packages", (question.packages,))
    if question.file:
        return Probe("files", (question.file, MOST_BYTES))
    if question.names:
        return Probe("files", (question.names, 0))
    if question.peers:
        peers = peers_of(host.name, wanted)
        return Probe("reach", (host.interface, peers, PEERS_WITHIN_S)) if peers else None
    if question.page:
        return Probe("http", ("GET", question.page, "", (), question.within_s))
    for kind in ("package", "unit", "disk", "shards"):
        if name := getattr(question, kind):
            return Probe(kind, (name,))
    for kind in ("host", "cuda", "listen"):
        if getattr(question, kind):
            return Probe(kind)
    return None


def peers_of(host: str, wanted: Wanted) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    """Every other host: name, address, and the ports where others come to it; SSH's where none is known."""
    inventory, deployment = wanted.wish.inventory, wanted.deployment
    found = []
    for other in inventory.hosts.values():
        if other.name != host and other.address:
            serving = _ports_of(other.name, deployment) if deployment else ()
            staging = (e.port for e in weights_endpoints(other, wanted.steps.get(other.name, ())))
            ports = tuple(sorted({*serving, *staging}))
            found.append((other.name, other.address, ports or (inventory.ssh.port,)))
    return tuple(found)


def _ports_of(host: str, deployment: Deployment) -> tuple[int, ...]:
    """Where other hosts connect: engines' and guards' ports, the router's and the front's."""
    ends = [e for p in deployment.processes_on(host) for e in p.endpoints if e.name != "supervisor"]
    ends += [r.endpoint("router") for r in deployment.routers if r.host == host]
    ends += [f.endpoint for f in deployment.fronts if f.host == host]
    return tuple(sorted({e.port for e in ends}))
