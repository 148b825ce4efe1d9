"""Any value of a deployment and the file line that set it: instance, host, port, setting, step or router."""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from launcher.model.deployment import Argument, Deployment, Endpoint, Instance, Process, RouterProcess
from launcher.model.problem import InputError, Problem
from launcher.model.profile import Settings
from launcher.model.role import Step
from launcher.model.wish import Wanted
from launcher.resolve.settings import spelled


@dataclass(frozen=True, slots=True)
class Line:
    """One value: its name, its text, and the `file:line` that set it (empty where there is none)."""

    name: str
    value: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Lines that belong together."""

    title: str
    lines: tuple[Line, ...]


def explain(wanted: Wanted, subject: str) -> tuple[Section, ...]:
    """All there is to say about `subject`; InputError, with what was probably meant, if there is nothing.

    A subject is an instance (`decode-0`), a host, a port, a flag or variable (`max-num-seqs`), a step's id,
    `router` or `front` (the address that users get).
    """
    deployment = wanted.deployment
    sections = [*_steps(wanted, subject), *_host(wanted, subject)]
    if deployment:
        sections += [
            *_instance(deployment, subject),
            *_routers(deployment, subject),
            *_fronts(deployment, subject),
            *_port(deployment, subject),
            *_setting(wanted, deployment, subject.removeprefix("--")),
        ]
    if not sections:
        raise InputError(_unknown(subject, _subjects(wanted)))
    return tuple(sections)


def text(sections: Iterable[Section]) -> str:
    """Sections for people: values in one column, sources in the next."""
    blocks = []
    for section in sections:
        shown = [(f"  {line.name} {line.value}".rstrip(), line.source) for line in section.lines]
        width = min(max((len(left) for left, _ in shown), default=0), 72)
        rows = (f"{left:<{width}}  {source}".rstrip() for left, source in shown)
        blocks.append("\n".join((section.title, *rows)))
    return "\n\n".join(blocks)


def _instance(deployment: Deployment, subject: str) -> Iterator[Section]:
    for instance in deployment.instances:
        if instance.name == subject:
            for process in instance.processes:
                yield from _process(instance, process)


def _process(instance: Instance, process: Process) -> Iterator[Section]:
    title = f"{instance.name} process {process.index} on {process.host}, {process.unit}"
    yield Section(f"{title}: ranks", tuple(_rank_lines(process)))
    yield Section(f"{title}: ports", tuple(_endpoint_line(e) for e in process.endpoints))
    yield Section(f"{title}: command", _argument_lines(process.command, process.arguments))
    yield Section(f"{title}: environment", _variable_lines(process.environment))


def _rank_lines(process: Process) -> Iterator[Line]:
    for rank in process.ranks:
        gpus = f"GPU {', '.join(map(str, rank.gpus))}" if rank.gpus else "no GPU"
        yield Line(f"rank {rank.index}", gpus)


def _endpoint_line(endpoint: Endpoint) -> Line:
    last = f"–{endpoint.port + endpoint.count - 1}" if endpoint.count > 1 else ""
    return Line(endpoint.name, f"{endpoint.address}:{endpoint.port}{last}")


def _argument_lines(command: tuple[str, ...], arguments: tuple[Argument, ...]) -> tuple[Line, ...]:
    return (
        Line(" ".join(command)),
        *(Line(a.flag or (a.value or ""), _own_value(a), a.source) for a in arguments),
    )


def _own_value(argument: Argument) -> str:
    return (argument.value or "") if argument.flag else ""


def _variable_lines(environment: Settings) -> tuple[Line, ...]:
    return tuple(Line(f"{name}={s.value}", source=s.source) for name, s in environment.items())


def _routers(deployment: Deployment, subject: str) -> Iterator[Section]:
    if subject == "router":
        for router in deployment.routers:
            yield from _router(router)


def _router(router: RouterProcess) -> Iterator[Section]:
    title = f"router on {router.host}, {router.unit}"
    yield Section(f"{title}: ports", tuple(_endpoint_line(e) for e in router.endpoints))
    yield Section(f"{title}: command", _argument_lines(router.command, router.arguments))
    if router.environment:
        yield Section(f"{title}: environment", _variable_lines(router.environment))


def _fronts(deployment: Deployment, subject: str) -> Iterator[Section]:
    if subject == "front":
        for front in deployment.fronts:
            yield Section(f"front on {front.host}, {front.unit}", (Line("url", front.url),))


def _host(wanted: Wanted, subject: str) -> Iterator[Section]:
    host = wanted.wish.inventory.hosts.get(subject)
    if host is None:
        return
    pools = [name for name, pool in wanted.wish.inventory.pools.items() if subject in pool.hosts]
    lines = [Line("address", host.address, host.source), Line("interface", host.interface, host.source)]
    yield Section(f"{subject}, {'pool ' + ', '.join(pools) if pools else 'in no pool'}", tuple(lines))
    if wanted.deployment:
        listening = [(o, e) for o, e in _listening(wanted.deployment) if e.host == subject]
        shown = (dataclasses.replace(_endpoint_line(e), name=f"{owner} {e.name}") for owner, e in listening)
        yield Section(f"{subject}: ports", tuple(shown))
    steps = tuple(Line(step.id, step.kind, step.source) for step in wanted.steps.get(subject, ()))
    yield Section(f"{subject}: steps", steps)


def _listening(deployment: Deployment) -> Iterator[tuple[str, Endpoint]]:
    for process in (p for i in deployment.instances for p in i.processes):
        yield from ((process.instance, e) for e in process.endpoints)
    for router in deployment.routers:
        yield from ((f"router {router.slot}", e) for e in router.endpoints)
    yield from (("front", front.endpoint) for front in deployment.fronts)


def _port(deployment: Deployment, subject: str) -> Iterator[Section]:
    if not subject.isdigit():
        return
    port = int(subject)
    found = [(o, e) for o, e in _listening(deployment) if e.port <= port < e.port + e.count]
    if found:
        lines = tuple(Line(f"{e.host} {owner}", f"{e.name} at {e.address}:{port}") for owner, e in found)
        yield Section(f"port {port}", lines)


def _setting(wanted: Wanted, deployment: Deployment, subject: str) -> Iterator[Section]:
    """A flag by its current name or by its release's own, or a variable."""
    engine = wanted.wish.profile.engine
    spelling = {} if engine is None else spelled(subject, engine)
    names = {subject, *spelling.values()}
    flags = {f"--{no}{name}" for name in names for no in ("", "no-")}
    everything: list[tuple[str, Process | RouterProcess]] = [
        *((f"{p.host} {p.instance}", p) for i in deployment.instances for p in i.processes),
        *((f"{r.host} router {r.slot}", r) for r in deployment.routers),
    ]
    lines = [
        *(Line(n, _said(a), a.source) for n, p in everything for a in p.arguments if a.flag in flags),
        *(
            Line(name, f"{variable}={setting.value}", setting.source)
            for name, p in everything
            for variable, setting in p.environment.items()
            if variable in names
        ),
    ]
    if lines:
        yield Section(subject, tuple(lines))


def _said(argument: Argument) -> str:
    return " ".join(argument.words())


def _steps(wanted: Wanted, subject: str) -> Iterator[Section]:
    for host, steps in wanted.steps.items():
        for step in steps:
            if step.id == subject:
                yield Section(f"{step.id} on {host}, kind {step.kind}", tuple(_want_lines(step)))


def _want_lines(step: Step) -> Iterator[Line]:
    for field in dataclasses.fields(step.want):
        value = getattr(step.want, field.name)
        if isinstance(value, str) and "\n" in value:
            yield Line(field.name, f"{value.count(chr(10))} lines", step.source)
            yield from (Line(f"  {row}") for row in value.splitlines())
        else:
            shown = value if isinstance(value, str) else json.dumps(value, default=str)
            yield Line(field.name, shown, step.source)


def _subjects(wanted: Wanted) -> set[str]:
    names = {*wanted.wish.inventory.hosts, *(s.id for steps in wanted.steps.values() for s in steps)}
    if wanted.deployment is None:
        return names
    names |= {i.name for i in wanted.deployment.instances}
    names |= {"router", "front"} if wanted.deployment.routers else set()
    everything: list[Process | RouterProcess] = [p for i in wanted.deployment.instances for p in i.processes]
    for p in (*everything, *wanted.deployment.routers):
        names |= {a.flag.removeprefix("--") for a in p.arguments if a.flag} | set(p.environment)
    return names


def _unknown(subject: str, known: set[str]) -> Problem:
    near = difflib.get_close_matches(subject, known, n=3)
    return Problem(
        what=f"nothing here is called {subject!r}",
        why="a subject is an instance, a host, a port, a flag or variable, a step, `router` or `front`",
        do=f"did you mean {' or '.join(near)}?" if near else "see `dsv32-launch plan --offline` for names",
    )
