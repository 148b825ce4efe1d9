"""Drills for this inventory: where each is planted, on hosts that are proven to be a sandbox's, and how."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from launcher.flows.runbook import fill_in
from launcher.flows.status import Status
from launcher.health.hands import Hands
from launcher.model.deployment import Deployment
from launcher.model.drill import WORDS, Act, Drill, StandIn
from launcher.model.facts import Probe
from launcher.model.inventory import Host
from launcher.model.problem import InputError, Problem
from launcher.sandbox import Sandbox, SandboxHost, faults

FLOW = "drill"
MACHINE_ID = Probe("read", ("/etc/machine-id", 64))
WITHIN_S = 30.0


@dataclass(frozen=True, slots=True)
class Case:
    """A drill at one spot."""

    drill: Drill
    host: str
    """Where it is planted; empty: on all hosts."""
    instance: str
    """Empty where it is no instance's."""
    hosts: tuple[str, ...]
    """Of the instance; else that host alone, or all."""
    names: Mapping[str, str]
    pool: str = ""
    """The instance's."""
    replaced: bool = False
    """Another instance of its pool serves in its place."""

    @property
    def title(self) -> str:
        """`engine-killed prefill-0@h01`."""
        spot = "@".join(word for word in (self.instance, self.host) if word)
        return f"{self.drill.id} {spot}".rstrip()


@dataclass(frozen=True, slots=True)
class Ground:
    """The sandbox hosts of an inventory, by its names, and what can stand in for their hardware."""

    hosts: Mapping[str, SandboxHost]
    stand_ins: Mapping[str, StandIn]


def by_address(hosts: Mapping[str, Host], sandbox: Sandbox) -> Mapping[str, SandboxHost]:
    """The host of this machine's sandbox for each of the inventory; InputError where one has none."""
    ours = {host.address: host for host in sandbox.hosts()}
    if foreign := [h for h in hosts.values() if h.address not in ours]:
        why = "no host of it has its address"
        raise InputError(*(_refusal(h, f"{why}, {h.address}", sandbox) for h in foreign))
    return {name: ours[host.address] for name, host in hosts.items()}


def prove(fleet: Hands, hosts: Mapping[str, Host], ground: Ground, sandbox: Sandbox) -> None:
    """InputError where what answers for a host of the inventory is no host of the sandbox."""
    answers = fleet.ask(dict.fromkeys(hosts, (MACHINE_ID,)), within_s=WITHIN_S)
    problems: list[Problem] = []
    for name, host in hosts.items():
        answer = answers[name]
        own = ground.hosts[name].exec("cat", "/etc/machine-id").stdout
        if isinstance(answer, Problem):
            problems.append(answer)
        elif not own.strip() or answer[MACHINE_ID].get("text") != own:
            problems.append(_refusal(host, "another machine answers at its address", sandbox))
    if problems:
        raise InputError(*problems)


def _refusal(host: Host, why: str, sandbox: Sandbox) -> Problem:
    what = f"{host.name} is no host of the sandbox in {sandbox.directory}: {why}"
    do = "make hosts with dsv32-launch sandbox up N, and an inventory of them"
    return Problem(what, host.source, "drills break hosts", do)


def cases_of(drill: Drill, deployment: Deployment, now: Status) -> tuple[Case, ...]:
    """Every spot of this deployment at which it is planted; none where there is no such spot."""
    if drill.spot == "router":
        found = [_case(drill, deployment, r.host, r.unit) for r in now.routers if r.reached]
        return tuple(found[:1])
    if drill.spot == "front":
        return tuple(_case(drill, deployment, f.host, f.unit) for f in deployment.fronts[:1])
    if drill.spot == "fleet":
        engines = [host for i in deployment.instances for host in i.hosts]
        hosts = tuple(dict.fromkeys((*engines, *(r.host for r in deployment.routers))))
        return (replace(_case(drill, deployment, "", ""), hosts=hosts),)
    return tuple(_of_engines(drill, deployment))


def _of_engines(drill: Drill, deployment: Deployment) -> Iterator[Case]:
    for pool in drill.pools:
        instances = [i for i in deployment.instances if i.pool == pool]
        first = instances[0] if instances else None
        processes = first.processes if first else ()
        for p in {"leader": processes[:1], "peer": processes[1:2]}.get(drill.spot, processes):
            case = _case(drill, deployment, p.host, p.unit)
            hosts = first.hosts if first else ()
            peer = next((h for h in hosts if h != p.host), p.host)
            names = {**case.names, "instance": p.instance, "guard": p.guard_unit, "peer": peer}
            replaced = len(instances) > 1
            yield replace(case, instance=p.instance, pool=pool, hosts=hosts, names=names, replaced=replaced)


def _case(drill: Drill, deployment: Deployment, host: str, unit: str) -> Case:
    paths = {"shared": deployment.paths.shared, "local": deployment.paths.local}
    names = {**dict.fromkeys(WORDS, ""), **paths, "host": host, "peer": host, "unit": unit}
    return Case(drill, host, "", (host,), names)


def perform(acts: Sequence[Act], case: Case, ground: Ground) -> None:
    """Each act in turn, on the hosts that it is for; LauncherError for the first that could not be done."""
    for act in acts:
        time.sleep(act.wait_s)
        where = {"host": (case.host,) if case.host else case.hosts, "instance": case.hosts}
        for name in where.get(act.on, tuple(ground.hosts)):
            _perform(act, ground.hosts[name], case, ground.stand_ins)


def _perform(act: Act, host: SandboxHost, case: Case, stand_ins: Mapping[str, StandIn]) -> None:
    def told(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(fill_in(text, case.names) for text in texts)

    unit = fill_in(act.unit, case.names)
    if act.signal:
        faults.signal(host, unit, act.signal, process=act.process)
    elif act.power:
        _power(host, act.power)
    elif act.fill:
        host.fill(act.fill)
    elif act.script:
        faults.run_script(host, fill_in(act.script, case.names))
    elif act.kernel:
        faults.kernel_says(host, told(act.kernel))
    elif act.says:
        faults.unit_says(host, unit, told(act.says))
    else:
        known = stand_ins.get(act.stand_in)
        programs = known.programs if known else act.answers
        faults.stand_in(host, programs, known.files if known else act.files)


def _power(host: SandboxHost, power: str) -> None:
    if power in ("freeze", "thaw"):
        host.freeze(power == "freeze")
    elif power == "heal":
        host.heal()
    elif power == "off":
        host.kill()
    elif power == "on":
        host.start()
    else:
        host.cut(silent=power == "cut-silent")


def mend(ground: Ground) -> None:
    """Every host up, without any fault that a drill can plant."""
    for host in ground.hosts.values():
        host.mend()
        host.start()
        faults.mend_inside(host)
