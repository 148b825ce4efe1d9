"""compare: what another stack or layout changes for one inventory, and how its instances could move there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from launcher.compare.commands import Group, Lines, command_changes, lines_of
from launcher.compare.findings import Findings, compared
from launcher.compare.lines import Difference, Release, differences
from launcher.compare.versions import Need, Version, needs, versions
from launcher.flows.fit import Load, fit
from launcher.flows.launches import launches_of
from launcher.flows.lint import problem_of
from launcher.lint.evaluate import evaluate
from launcher.load.edit import Edit, Put
from launcher.model.inventory import Inventory
from launcher.model.knowledge import Knowledge
from launcher.model.problem import InputError, Problem
from launcher.model.profile import EnginePool
from launcher.model.wish import Wanted, Wish
from launcher.resolve import resolve
from launcher.resolve.exchange import differences as kept_apart
from launcher.rollout.groups import Member, first_group

LOAD = Load(prompt=4096, answer=1024)
"""The request of which it is told how many fit: that of `fit` where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A pool's KV before and after, of one GPU or rank; requests of LOAD at once in all its instances."""

    pool: str
    kv_gib: tuple[float, float]
    kv_tokens: tuple[int, int]
    requests: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Move:
    """How instances move while requests come, if all of them serve then."""

    apart: tuple[str, ...]
    """What keeps engines of both sides from handing KV to each other; (): they may serve together."""
    first: tuple[str, ...] = ()
    """Instances that move together, before the others; (): one of a pool after the other."""
    rest: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    """Why it does not go without a break; (): it does."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that differs."""

    stack: tuple[str, str]
    layout: tuple[str, str]
    versions: tuple[Version, ...]
    needs: tuple[Need, ...]
    lines: tuple[Difference, ...] = ()
    commands: tuple[Group, ...] = ()
    findings: Findings = field(default_factory=Findings)
    memory: tuple[Memory, ...] = ()
    no_memory: str = ""
    """Why memory is not compared."""
    move: Move | None = None
    """None: nothing serves, or it cannot be laid out."""
    problems: tuple[Problem, ...] = ()
    """What keeps it from being laid out or started."""


def edits_to(inventory: Inventory, *, stack: str, layout: str) -> tuple[Edit, ...]:
    """The lines that name another stack, and another layout where one is given. InputError where all of it is
    so already."""
    wanted = {"stack": stack, **({"layout": layout} if layout else {})}
    others = {key: name for key, name in wanted.items() if getattr(inventory, key) != name}
    if not others:
        told = ", ".join(f"{key} {name}" for key, name in wanted.items())
        do = f"dsv32-launch up {inventory.path} makes it so"
        raise InputError(Problem(f"the inventory says {told} already", inventory.path, do=do))
    return tuple(Put((key,), name) for key, name in others.items())


def compare(before: Wanted, after: Wish, knowledge: Knowledge) -> Comparison:
    """The deployment there is against what another inventory of the same fleet leads to, asking no host."""
    old, new = before.wish.profile, after.profile
    wanted, problems = _resolved(after)
    was, will = launches_of(before), launches_of(wanted) if wanted else ()
    releases = [Release(p.stack.engine_version, p.engine) for p in (old, new) if p.engine]
    told = compared(*(evaluate(knowledge, side) for side in (was, will))) if wanted else Findings()
    memory, no_memory = _memory(before, wanted, knowledge)
    wrong = tuple(problem_of(f) for f in (*told.new, *told.still) if f.severity == "error")
    return Comparison(
        stack=(old.stack.name, new.stack.name),
        layout=(before.wish.inventory.layout, after.inventory.layout),
        versions=versions(old.stack, new.stack),
        needs=tuple(needs(new)),
        lines=differences(will or was, releases[0], releases[-1], knowledge) if releases[1:] else (),
        commands=command_changes(_lines(before), _lines(wanted)) if wanted else (),
        findings=told,
        memory=memory,
        no_memory=no_memory,
        move=_move(before, wanted) if wanted else None,
        problems=(*problems, *wrong),
    )


def _lines(wanted: Wanted) -> Lines:
    routers = wanted.deployment.routers if wanted.deployment else ()
    return lines_of(launches_of(wanted), routers, wanted.wish.profile.router)


def _resolved(wish: Wish) -> tuple[Wanted | None, tuple[Problem, ...]]:
    try:
        return resolve(wish), ()
    except InputError as error:
        return None, error.problems


def _memory(before: Wanted, after: Wanted | None, knowledge: Knowledge) -> tuple[tuple[Memory, ...], str]:
    if after is None:
        return (), "it cannot be laid out"
    try:
        old, new = ({r.pool: r for r in fit(w, knowledge, LOAD, name="")} for w in (before, after))
    except InputError as error:
        return (), error.problems[0].what
    return tuple(
        Memory(
            pool,
            kv_gib=(old[pool].budget.kv_gib, row.budget.kv_gib),
            kv_tokens=(old[pool].budget.kv_tokens, row.budget.kv_tokens),
            requests=(old[pool].requests, row.requests),
        )
        for pool, row in new.items()
        if pool in old
    ), ""


def _move(before: Wanted, after: Wanted) -> Move | None:
    if not before.deployment or not after.deployment:
        return None
    was = {i.name: i.hosts for i in before.deployment.instances}
    members = [
        Member(i.name, i.pool, frozenset((*i.hosts, *was.get(i.name, ()))), serves=i.name in was)
        for i in after.deployment.instances
    ]
    minimum: dict[EnginePool, int] = {m.pool: after.wish.inventory.pools[m.pool].minimum for m in members}
    apart = kept_apart(before, after) if after.deployment.routers else ()
    if not apart:
        return Move((), breaks=tuple(_too_few(members, minimum, groups=False)))
    first = first_group(members, minimum)
    if first is None:
        return Move(apart, breaks=tuple(_too_few(members, minimum, groups=True)))
    moved = tuple(m.name for m in members if m.name in first)
    return Move(apart, moved, tuple(m.name for m in members if m.name not in first))


def _too_few(members: list[Member], minimum: dict[EnginePool, int], *, groups: bool) -> Iterator[str]:
    """Pools of which too few would serve while others move."""
    for pool, number in Counter(m.pool for m in members if m.serves).items():
        needed = 2 * max(1, minimum[pool]) if groups else minimum[pool] + 1
        if number < needed:
            yield f"pool {pool} has {number}, it takes {needed}"
