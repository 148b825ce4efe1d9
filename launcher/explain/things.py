"""Instances, routers, fronts, hosts, units and steps: each of their lines, with what set it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator

from launcher.explain.fact import Fact, Topic, together
from launcher.explain.known import Known
from launcher.explain.ports import Listener, listeners, port_fact
from launcher.explain.settings import about_flag
from launcher.explain.units import as_written, lines_of, role_of, unit_steps
from launcher.model.deployment import Argument, Deployment, Instance, Process, RouterProcess
from launcher.model.profile import place_of
from launcher.model.role import Step
from launcher.steps import unit


def topics(subject: str, known: Known) -> Iterator[Topic]:
    """An instance, `router`, `front`, a host, a unit or a step's id; nothing for anything else."""
    for kind in (_instance_topics, _router_topics, _host_topics, _unit_topics, _step_topics):
        yield from kind(subject, known)


def _instance_topics(subject: str, known: Known) -> Iterator[Topic]:
    """An instance: ranks, ports, command and environment of its processes, equal ones together."""
    deployment = known.wanted.deployment
    for instance in deployment.instances if deployment else ():
        if instance.name == subject:
            yield from _instance(instance, known)


def _router_topics(subject: str, known: Known) -> Iterator[Topic]:
    """`router`, or the `front` before it."""
    deployment = known.wanted.deployment
    routers = deployment.routers if deployment else ()
    if subject == "router" and routers:
        hosts = tuple(_where(r) for r in routers)
        title = f"router on {', '.join(dict.fromkeys(r.host for r in routers))}"
        yield Topic(f"{title}: ports", tuple(f for r in routers for f in _ports(r, known)))
        command = together(_lines(routers, known))
        yield Topic(f"{title}: command", tuple(_of_some(f, hosts) for f in command))
        variables = together(f for r in routers for f in _variables(r, known))
        if variables:
            yield Topic(f"{title}: environment", tuple(_of_some(f, hosts) for f in variables))
    if subject == "front":
        for front in deployment.fronts if deployment else ():
            port = port_fact(Listener(front, front.endpoint), known)
            url = dataclasses.replace(port, name="url", value=front.url, of=(front.host,))
            moves = Fact(
                "does",
                "address",
                f"{front.settings.address} moves between the hosts that route (keepalived); {front.host} is "
                f"number {front.place + 1} to take it where none has it",
            )
            facts = (url, moves) if front.shared else (url,)
            yield Topic(f"front on {front.host}, {front.unit}", facts)


def _host_topics(subject: str, known: Known) -> Iterator[Topic]:
    """A host: where it is, what it listens on, and its steps."""
    wanted = known.wanted
    host = wanted.wish.inventory.hosts.get(subject)
    if host is None:
        return
    pools = [name for name, pool in wanted.wish.inventory.pools.items() if subject in pool.hosts]
    where = (
        Fact("value", "address", host.address, source=place_of(host, "address")),
        Fact("value", "interface", host.interface, source=place_of(host, "interface")),
    )
    yield Topic(f"{subject}, {'pool ' + ', '.join(pools) if pools else 'in no pool'}", where)
    if wanted.deployment:
        own = (one for one in listeners(wanted.deployment) if one.endpoint.host == subject)
        yield Topic(f"{subject}: ports", tuple(port_fact(one, known) for one in own))
    abouts = {role.name: role.about for role in wanted.wish.roles}
    steps = (
        Fact("value", s.id, s.kind, source=s.source, about=abouts.get(s.role, ""))
        for s in wanted.steps.get(subject, ())
    )
    yield Topic(f"{subject}: steps", tuple(steps))


def _unit_topics(subject: str, known: Known) -> Iterator[Topic]:
    """A unit: its lines in order, those that differ between hosts one after another."""
    steps = [s for s in unit_steps(known.wanted) if s.want.name in (subject, f"{subject}.service")]
    if not steps:
        return
    hosts = tuple(s.host for s in steps)
    facts = together(f for s in steps for f in _unit_lines(s, known))
    title = f"{steps[0].want.name} on {', '.join(hosts)}, step {steps[0].id}"
    yield Topic(title, tuple(_of_some(f, hosts) for f in facts))


def _step_topics(subject: str, known: Known) -> Iterator[Topic]:
    """A step, on all its hosts: what it wants."""
    steps = [s for steps in known.wanted.steps.values() for s in steps if s.id == subject]
    if steps:
        hosts = tuple(s.host for s in steps)
        facts = together(f for s in steps for f in _want_facts(s, known))
        role = role_of(steps[0], known.wanted)
        does = Fact("does", value=role.about, source=role.source)
        title = f"{subject} on {', '.join(hosts)}, kind {steps[0].kind}"
        yield Topic(title, (does, *(_of_some(f, hosts) for f in facts)))


def names(known: Known) -> set[str]:
    """Everything that may be asked for here."""
    wanted = known.wanted
    found = {*wanted.wish.inventory.hosts, *(s.id for steps in wanted.steps.values() for s in steps)}
    found |= {s.want.name for s in unit_steps(wanted)}
    if wanted.deployment:
        found |= {i.name for i in wanted.deployment.instances}
        found |= {"router", "front"} if wanted.deployment.routers else set()
    return found


def _instance(instance: Instance, known: Known) -> Iterator[Topic]:
    hosts = tuple(p.host for p in instance.processes)
    title = f"{instance.name} on {', '.join(hosts)}, {instance.processes[0].unit}"
    ranks = (_rank_facts(p) for p in instance.processes)
    yield Topic(f"{title}: ranks", tuple(f for facts in ranks for f in facts))
    yield Topic(f"{title}: ports", tuple(f for p in instance.processes for f in _ports(p, known)))
    command = together(_lines(instance.processes, known))
    yield Topic(f"{title}: command", tuple(_of_some(f, hosts) for f in command))
    variables = together(f for p in instance.processes for f in _variables(p, known))
    yield Topic(f"{title}: environment", tuple(_of_some(f, hosts) for f in variables))


def _of_some(fact: Fact, everyone: tuple[str, ...]) -> Fact:
    """What holds for everyone needs no names."""
    return dataclasses.replace(fact, of=()) if fact.of == everyone else fact


def _rank_facts(process: Process) -> Iterator[Fact]:
    for rank in process.ranks:
        gpus = f"GPU {', '.join(map(str, rank.gpus))}" if rank.gpus else "no GPU"
        yield Fact("value", f"rank {rank.index}", gpus, (process.host,))


def _where(owner: Process | RouterProcess) -> str:
    """`gpu05`; of a router, of which a host has two, `gpu01 a`."""
    return owner.host if isinstance(owner, Process) else f"{owner.host} {owner.slot}"


def _ports(owner: Process | RouterProcess, known: Known) -> Iterator[Fact]:
    for endpoint in owner.endpoints:
        fact = port_fact(Listener(owner, endpoint), known)
        yield dataclasses.replace(fact, of=(_where(owner),))


def _lines(owners: tuple[Process, ...] | tuple[RouterProcess, ...], known: Known) -> Iterator[Fact]:
    for owner in owners:
        yield Fact("value", "", " ".join(owner.command), (_where(owner),))
    for owner in owners:
        yield from (_argument(owner, argument, known) for argument in owner.arguments)


def _argument(owner: Process | RouterProcess, argument: Argument, known: Known) -> Fact:
    about = _about(owner, argument.flag.removeprefix("--") or "model", known)
    return Fact("value", argument.flag, argument.value or "", (_where(owner),), argument.source, about)


def _variables(owner: Process | RouterProcess, known: Known) -> Iterator[Fact]:
    for name, setting in owner.environment.items():
        yield Fact(
            "value", name, str(setting.value), (_where(owner),), setting.source, _about(owner, name, known)
        )


def _about(owner: Process | RouterProcess, name: str, known: Known) -> str:
    """What the program does with a flag or variable."""
    if isinstance(owner, Process):
        return about_flag(name, known)
    kind = known.wanted.wish.profile.router
    does = kind.does.get(name) if kind else None
    return str(does.value) if does else ""


def _unit_lines(step: Step, known: Known) -> Iterator[Fact]:
    """Each line of a unit; in the place of ExecStart's arguments and of variables what set them."""
    owner = _owner(step, known.wanted.deployment)
    for line in lines_of(step, known.wanted):
        variable = line.value.partition("=")[0].strip("\"'")
        if line.directive == "Environment" and owner and variable in owner.environment:
            source, about = owner.environment[variable].source, _about(owner, variable, known)
            yield Fact("value", "Environment", line.value, (step.host,), source, about)
            continue
        does = known.directives.get(line.directive)
        about = line.why or (str(does.value) if does else "")
        if owner is None or line.directive != "ExecStart":
            yield Fact("value", line.directive, line.value, (step.host,), line.source, about)
            continue
        yield Fact("value", line.directive, " ".join(owner.command), (step.host,), line.source, about)
        yield from (_argument(owner, argument, known) for argument in owner.arguments)


def _owner(step: Step, deployment: Deployment | None) -> Process | RouterProcess | None:
    """Whose unit it is."""
    if deployment is None:
        return None
    processes = deployment.processes_on(step.host)
    owners: tuple[Process | RouterProcess, ...] = (*processes, *deployment.routers)
    return next((o for o in owners if (o.host, o.unit) == (step.host, step.want.name)), None)


def _want_facts(step: Step, known: Known) -> Iterator[Fact]:
    """Each parameter of a step, with the line of its role that has it."""
    written = as_written(step, known.wanted).params
    for field in dataclasses.fields(step.want):
        value = getattr(step.want, field.name)
        shown = value if isinstance(value, str) else json.dumps(value, default=str)
        if field.name == "content" and isinstance(step.want, unit.Params) and value:
            shown = f"explain {step.want.name} shows its lines"
        if field.name == "content" and getattr(step.want, "secret", False):
            shown = "secret, and shown to nobody"
        words = (field.name, "template", "file") if field.name == "content" else (field.name,)
        source = next((written[word].source for word in words if word in written), step.source)
        if shown:
            yield Fact("value", field.name, shown, (step.host,), source)
