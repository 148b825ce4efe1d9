"""Role × host × deployment → steps, each with its kind's parameters filled; knows no facts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, TypeAlias

from launcher.load.schema import Place, fill, near
from launcher.model.deployment import Deployment, Front, Process, RouterProcess
from launcher.model.inventory import Host, PoolName
from launcher.model.owned import Owned
from launcher.model.problem import InputError, Problem
from launcher.model.role import STAGES, Role, RoleStep, Step
from launcher.model.wish import Wanted, Wish
from launcher.resolve.exchange import identity_text, kv_identity
from launcher.resolve.monitoring import grafana, rules
from launcher.resolve.params import Param, read_params
from launcher.resolve.ports import beside_weights, weights_endpoints
from launcher.steps import KINDS, unit

DERIVED = frozenset({"depends", "note"})
"""Parameters that are worked out here, and that no role gives."""
Values: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Subject:
    """What a step is for: a host, or an engine process, a router, both routers or the front on it."""

    host: Host
    process: Process | None = None
    routers: tuple[RouterProcess, ...] = ()
    front: Front | None = None

    @property
    def instance(self) -> str:
        """The process's instance; empty for all else."""
        return self.process.instance if self.process else ""

    @property
    def mark(self) -> str:
        """What tells it from the others of its host: an instance, or one of the two routers."""
        return self.routers[0].slot if len(self.routers) == 1 else self.instance


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """One step of a role, its parameters compiled."""

    role: Role
    step: RoleStep
    params: Mapping[str, Param]
    fixed: bool
    """No parameter differs from host to host."""


def expand(wish: Wish, deployment: Deployment | None) -> Wanted:
    """The steps of each host: by stage, then in the roles' order, then as written.

    InputError with the Problems of all roles on all hosts.
    """
    problems: dict[Problem, None] = {}
    roles = sorted(wish.roles, key=lambda role: STAGES.index(role.stage))
    filler = Filler(wish, deployment, problems)
    drafts = {role.name: _drafts(role, problems) for role in roles}
    steps = {
        host.name: tuple(
            step
            for role in roles
            if not role.pools or set(role.pools) & _pools_of(host, wish)
            for step in filler.steps(drafts[role.name], host)
        )
        for host in wish.inventory.hosts.values()
    }
    problems.update(dict.fromkeys(p for each in steps.values() for p in _disputed(each)))
    if deployment:
        hosts = wish.inventory.hosts.values()
        staged = (e for host in hosts for e in weights_endpoints(host, steps[host.name]))
        problems.update(dict.fromkeys(beside_weights(deployment, staged)))
    if problems:
        raise InputError(*problems)
    return Wanted(wish, deployment, steps)


class Filler:
    """Fills steps; remembers what does not differ from host to host."""

    def __init__(self, wish: Wish, deployment: Deployment | None, problems: dict[Problem, None]) -> None:
        self._values: Values = {**shared_values(wish, deployment), **_watched_values(wish)}
        self._inventory = wish.inventory
        self._deployment = deployment
        self._problems = problems
        self._notes = _kv_notes(wish, deployment)
        self._texts: dict[Param, object] = {}
        self._wants: dict[Draft, Any] = {}

    def steps(self, drafts: tuple[Draft, ...], host: Host) -> Iterator[Step]:
        """The steps of one role on one host."""
        made: dict[tuple[str, str], Any] = {}
        for draft in drafts:
            for subject in self._subjects(draft.step, host):
                made[draft.step.name, subject.mark] = self._want(draft, subject)
        for draft in drafts:
            for subject in self._subjects(draft.step, host):
                want = made[draft.step.name, subject.mark]
                if want is None:
                    continue
                if draft.step.restart_on:
                    want = replace(want, depends=_depends(draft.step, subject.mark, made))
                if isinstance(want, unit.Params) and want.guarded:
                    want = replace(want, note=self._notes[subject.instance])
                yield _step(draft, subject, want)

    def _subjects(self, step: RoleStep, host: Host) -> Iterator[Subject]:
        if step.each in ("monitored", "monitor"):
            watching = self._inventory.monitoring.host
            if watching and (step.each == "monitored" or watching == host.name):
                yield Subject(host)
        else:
            yield from _subjects(step, host, self._deployment)

    def _want(self, draft: Draft, subject: Subject) -> Any:
        """The kind's parameters; None, and Problems noted, where they cannot be filled."""
        if draft.fixed and draft in self._wants:
            return self._wants[draft]
        want = None
        try:
            values = {**self._values, **self._subject_values(subject)}
            filled: dict[str, object]
            if _slot_of(draft.step.kind):
                filled = {"slots": [self._texts_of(draft, {**values, "router": r}) for r in subject.routers]}
            else:
                filled = self._texts_of(draft, values)
            want = fill(KINDS[draft.step.kind].Params, filled, place=_places(draft))
        except InputError as error:
            self._problems.update(dict.fromkeys(error.problems))
        if draft.fixed:
            self._wants[draft] = want
        return want

    def _texts_of(self, draft: Draft, values: Values) -> dict[str, object]:
        return {name: self._text(param, values) for name, param in draft.params.items()}

    def _text(self, param: Param, values: Values) -> object:
        if not param.fixed:
            return param.render(values)
        if param not in self._texts:
            self._texts[param] = param.render(values)
        return self._texts[param]

    def _subject_values(self, subject: Subject) -> dict[str, object]:
        found: dict[str, object] = {"host": subject.host}
        if subject.process and self._deployment:
            found["process"] = subject.process
            found["instance"] = self._deployment.instance(subject.process.instance)
        if len(subject.routers) == 1:
            found["router"] = subject.routers[0]
        if subject.front:
            found["front"] = subject.front
        return found


def _drafts(role: Role, problems: dict[Problem, None]) -> tuple[Draft, ...]:
    """The steps of a role; Problems are noted for those that cannot be read."""
    drafts = []
    for step in role.steps:
        kind = KINDS.get(step.kind)
        if kind is None:
            problem = Problem(f"unknown kind `{step.kind}`", where=step.source, do=near(step.kind, KINDS))
            problems[problem] = None
            continue
        names = {f.name for f in fields(_slot_of(step.kind) or kind.Params)}
        if step.restart_on and "depends" not in names:
            what = f"step {role.name}/{step.name} of kind {step.kind} has restart_on"
            problems[Problem(what, where=step.source, do="only units restart: remove the line")] = None
            continue
        words = names - DERIVED | ({"template", "file"} if "content" in names else set())
        unknown = [name for name in step.params if name not in words]
        for name in unknown:
            known = words | ({"kind", "each", "stays"} | ({"restart_on"} if "depends" in names else set()))
            what = f"unknown parameter `{name}` in step {role.name}/{step.name} of kind {step.kind}"
            problems[Problem(what, where=step.params[name].source, do=near(name, known))] = None
        if unknown:
            continue
        try:
            params = read_params(role, step, has_content="content" in names)
        except InputError as error:
            problems.update(dict.fromkeys(error.problems))
            continue
        drafts.append(Draft(role, step, params, fixed=all(p.fixed for p in params.values())))
    return tuple(drafts)


def _step(draft: Draft, subject: Subject, want: Any) -> Step:
    suffix = f"[{subject.mark}]" if subject.mark else ""
    return Step(
        id=f"{draft.role.name}/{draft.step.name}{suffix}",
        role=draft.role.name,
        stage=draft.role.stage,
        kind=draft.step.kind,
        host=subject.host.name,
        want=want,
        instance=want.guarded if isinstance(want, unit.Params) else "",
        source=draft.step.source,
        stays=draft.step.stays,
    )


def _subjects(step: RoleStep, host: Host, deployment: Deployment | None) -> Iterator[Subject]:
    """What a step is for on one host: `each` of it."""
    if step.each == "host":
        yield Subject(host)
    elif deployment and step.each == "process":
        yield from (Subject(host, process=p) for p in deployment.processes_on(host.name))
    elif deployment and step.each in ("front", "address"):
        fronts = (f for f in deployment.fronts if f.host == host.name)
        yield from (Subject(host, front=f) for f in fronts if f.shared or step.each == "front")
    elif deployment:
        routers = tuple(r for r in deployment.routers if r.host == host.name)
        each = ((routers,) if routers else ()) if _slot_of(step.kind) else ((r,) for r in routers)
        yield from (Subject(host, routers=some) for some in each)


def _slot_of(kind: str) -> Any:
    """Of a kind that is about both routers of a host: what is filled once for each of them; else None."""
    return getattr(KINDS.get(kind), "Slot", None)


def _disputed(steps: tuple[Step, ...]) -> Iterator[Problem]:
    """Things of a host that two roles own, or that two steps want in two ways: each run would undo what the
    one before did."""
    first: dict[tuple[str, str], tuple[Step, Owned]] = {}
    told: set[tuple[str, str]] = set()
    for step in steps:
        for mine in KINDS[step.kind].owns(step.want):
            other, its = first.setdefault((mine.sort, mine.name), (step, mine))
            alike = its.state == mine.state and (other.role == step.role or (its.shared and mine.shared))
            if not alike and not (mine.sort == "path" and (other.id, step.id) in told):  # a unit's own file
                told.add((other.id, step.id))
                yield _dispute(other, step, str(mine), same=its.state == mine.state)
    yield from _taken_away(first.values())


def _taken_away(owners: Iterable[tuple[Step, Owned]]) -> Iterator[Problem]:
    """What lies in a folder that another step wants to be gone."""
    paths = [(step, owned.name) for step, owned in owners if owned.sort == "path"]
    for gone, folder in ((step, name) for step, name in paths if step.kind == "absent"):
        for step, name in paths:
            if name.startswith(f"{folder}/"):
                yield _dispute(gone, step, f"path {name}", same=False)


def _dispute(one: Step, other: Step, thing: str, *, same: bool) -> Problem:
    do = "keep one of them, in a role that the other one needs" if same else "keep one of them"
    said = f"both own {thing}" if same else f"want {thing} in two ways"
    what = f"steps {one.id} and {other.id} {said}"
    return Problem(what, where=other.source, why=f"the other is at {one.source}", do=do)


def _depends(step: RoleStep, mark: str, made: Mapping[tuple[str, str], Any]) -> str:
    """Digest over the content of the steps named in `restart_on`: of the same subject, else of the host."""
    digest = hashlib.sha256()
    for name in step.restart_on:
        want = made.get((name, mark)) or made.get((name, ""))
        content = getattr(want, "content", None) or repr(want)
        digest.update(f"{name}\n{content}\n".encode())
    return digest.hexdigest()


def _kv_notes(wish: Wish, deployment: Deployment | None) -> dict[str, str]:
    """Instance → what its processes record at each start: what a rollout must know of engines that run."""
    if deployment is None:
        return {}
    pools = dict.fromkeys(i.pool for i in deployment.instances)
    texts = {pool: identity_text(kv_identity(wish.profile, deployment, pool)) for pool in pools}
    return {i.name: texts[i.pool] for i in deployment.instances}


def _places(draft: Draft) -> Place:
    def place(location: tuple[str | int, ...]) -> str:
        name = next((str(part) for part in location if str(part) in draft.params), "")
        param = draft.params.get(name)
        return param.source if param else draft.step.source

    return place


def shared_values(wish: Wish, deployment: Deployment | None) -> dict[str, object]:
    """The names that every template knows, of roles and of checks."""
    profile = wish.profile
    return {
        "inventory": wish.inventory,
        "paths": wish.inventory.paths,
        "stack": profile.stack,
        "platform": profile.platform,
        "hardware": profile.hardware,
        "model": profile.model,
        "engine": profile.engine,
        "layout": profile.layout,
        "deployment": deployment,
        "secret": partial(_revealed, wish),
    }


def _watched_values(wish: Wish) -> dict[str, object]:
    """The names that only roles know: the rules of Prometheus, and dashboards as Grafana's JSON."""
    if wish.monitoring is None:
        return {"rules": (), "dashboards": {}}
    return {
        "rules": tuple(rules(wish.monitoring, wish.inventory.monitoring)),
        "dashboards": {name: grafana(board) for name, board in wish.monitoring.dashboards.items()},
    }


def _revealed(wish: Wish, name: str) -> str:
    """A secret's value, for the content of a `file` step with `secret: true`. Empty where no name is given,
    and where secrets are not opened because no host is asked."""
    return wish.secrets[name].reveal() if name in wish.secrets else ""


def _pools_of(host: Host, wish: Wish) -> set[PoolName]:
    return {name for name, pool in wish.inventory.pools.items() if host.name in pool.hosts}
