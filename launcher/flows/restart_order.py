"""What a restart means, and who starts anew together, so that enough of each pool serve meanwhile; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from launcher.flows.minimum import too_few
from launcher.flows.targets import unknown
from launcher.model.deployment import Deployment, Instance
from launcher.model.inventory import ENGINE_POOLS
from launcher.model.problem import InputError, Problem
from launcher.model.wish import Wanted

EVERYTHING, ROUTER = "all", "router"
BECAUSE = "restart: "
"""Begins the reason of a drain that a restart made: a later restart may end it."""
Waves: TypeAlias = tuple[tuple[Instance, ...], ...]
"""Instances that start anew at the same time, in order."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How it is to be done."""

    rolling: bool
    """One instance after the other; else all at once."""
    canary: bool
    """One instance first; the others when it has answered."""
    below_minimum: bool
    within_s: float
    """Seconds to wait for the requests that an instance has begun."""


@dataclass(frozen=True, slots=True)
class Meant:
    """What starts anew."""

    instances: tuple[Instance, ...]
    routing: tuple[str, ...] = ()
    """Hosts whose two routers do."""


def meant_by(deployment: Deployment, target: str) -> Meant:
    """An instance, a pool, what is on a host, the routers, or all. InputError for nothing of that name."""
    everyone, fronts = deployment.instances, [f.host for f in deployment.fronts]
    instances = tuple(i for i in everyone if target in (i.name, i.pool, *i.hosts, EVERYTHING))
    instances = everyone if target == EVERYTHING else instances
    routing = tuple(h for h in fronts if target in (h, ROUTER, EVERYTHING))
    if instances or routing:
        return Meant(instances, routing)
    words = {w for i in everyone for w in (i.name, i.pool, *i.hosts)} | {*fronts, EVERYTHING}
    known = sorted(words | ({ROUTER} if fronts else set()))
    raise InputError(unknown(target, "instance, pool or host with one", known))


def both_sides(wanted: Wanted) -> bool:
    """Must the other side of each pair start anew, too? By the engine's release."""
    engine, deployment = wanted.wish.profile.engine, wanted.deployment
    if not engine or not deployment or engine.repair != "restart-peer":
        return False
    return len({i.pool for i in deployment.instances}) == len(ENGINE_POOLS)


def touched(wanted: Wanted, meant: Meant) -> tuple[Instance, ...]:
    """The instances that may start anew because of this."""
    everyone = meant.instances and both_sides(wanted) and wanted.deployment
    return everyone.instances if everyone else meant.instances


def ordered(wanted: Wanted, chosen: Sequence[Instance], manner: Manner, up: Collection[str]) -> Waves:
    """Who starts anew together; `up`: the instances that serve and get requests. What serves nobody is first.

    Where a pair does not survive the end of one side, everything that has ever been paired starts anew: half
    of each pool, while the other half serves, and users move from one to the other between. So no instance
    ever meets one that knew an earlier life of it. All at once where that cannot be, if it may.
    """
    if not chosen or not wanted.deployment:
        return ()
    first = sorted(chosen, key=lambda i: i.name in up)
    if both_sides(wanted):
        halves = _halves(wanted.deployment, first, up)
        fine = not manner.below_minimum or not any(refused(wanted, halves, manner, up, ()))
        return halves if fine else (wanted.deployment.instances,)
    if manner.rolling:
        return tuple((i,) for i in first)
    return (tuple(first[:1]), tuple(first[1:])) if manner.canary and first[1:] else (tuple(first),)


def _halves(deployment: Deployment, first: Sequence[Instance], up: Collection[str]) -> Waves:
    one: list[Instance] = []
    for pool in ENGINE_POOLS:
        own = [i for i in deployment.instances if i.pool == pool]
        own.sort(key=lambda i: (i.name in up, i not in first))
        one += own[: max(1, len(own) // 2)]
    other = tuple(i for i in deployment.instances if i not in one)
    return (tuple(one), other) if other else (tuple(one),)


def refused(
    wanted: Wanted, waves: Waves, manner: Manner, up: Collection[str], drained: Collection[str]
) -> Iterator[Problem]:
    """A Problem for each pool that would fall below its minimum; `drained`: what gets no requests."""
    names = sorted({i.name for wave in waves for i in wave})
    do = "say --below-minimum"
    if both_sides(wanted):
        do += f": {', '.join(names)} start anew at once then, and requests fail"
    do = f"bring another one up first, or {do}"
    if not manner.rolling and not both_sides(wanted):
        do = f"say --rolling, {do}"
    pools = wanted.wish.inventory.pools
    return too_few(pools, waves, up, do=do, why=_again(wanted), drained=drained)


def _again(wanted: Wanted) -> str:
    engine = wanted.wish.profile.engine
    if engine is None or not both_sides(wanted):
        return ""
    return f"{engine.name} does not pair again by itself, so all of both pools start anew, half by half; "
