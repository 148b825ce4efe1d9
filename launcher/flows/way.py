"""Way: who moves when in a rollout, by what runs now, and whether enough serve meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from launcher.execute.hands import Hands
from launcher.execute.waves import waves
from launcher.flows.away import names
from launcher.flows.drain import serving
from launcher.flows.drained import drained_on, lasting
from launcher.flows.groups import Member, first_group, one_of_each
from launcher.flows.minimum import too_few
from launcher.flows.restart_order import both_sides
from launcher.model.deployment import Instance
from launcher.model.plan import Action, Plan
from launcher.model.problem import PlanRefusedError, Problem
from launcher.model.profile import EnginePool
from launcher.model.wish import Wanted
from launcher.resolve.exchange import differences


@dataclass(frozen=True, slots=True)
class Way:
    """Who moves when."""

    first: tuple[Instance, ...] = ()
    """Moves while the others serve, then serves while they move; nobody: one of a pool after the other."""
    rest: tuple[Instance, ...] = ()
    switched: bool = False
    """An earlier run has come so far that users reach the first group."""
    why: tuple[str, ...] = ()
    """What keeps both groups from serving together."""
    breaks: bool = False
    """Nothing serves while the first group starts."""


def way_of(fleet: Hands, before: Wanted, after: Wanted, planned: Plan, *, below_minimum: bool) -> Way:
    """Who moves when, by what runs now: a run that was killed is taken up where it was.

    PlanRefusedError where too few of a pool would serve meanwhile, unless `below_minimum`.
    """
    why = (*differences(before, after), *_unpaired(after))
    deployment = after.deployment
    moved = {c.instance for c in planned.stage("engine") if c.instance}
    drained = drained_on(fleet, after)
    away = {d.instance for d in drained} - {d.instance for d in lasting(drained)}
    if not deployment or not deployment.routers or not why or not (moved or away):
        if not below_minimum:
            _refuse_one_by_one(fleet, after, planned)
        return Way()
    instances = tuple(i for i in deployment.instances if i.name not in {d.instance for d in lasting(drained)})
    if away:
        others = {i.name for i in instances} - away
        done = bool(others) and not others & moved
        return _way(instances, others if done else away, why, switched=done)
    members = _members(fleet, before, after, instances)
    minimum = {m.pool: after.wish.inventory.pools[m.pool].minimum for m in members}
    first = first_group(members, minimum)
    if first is None and not below_minimum:
        short = [m for m in members if _count(members, m.pool) < 2 * (minimum[m.pool] or 1)]
        raise PlanRefusedError(*_too_few(after, short or members, why))
    return replace(_way(instances, first or one_of_each(members), why), breaks=first is None)


def _unpaired(wanted: Wanted) -> Iterator[str]:
    if both_sides(wanted) and wanted.wish.profile.engine:
        yield f"{wanted.wish.profile.engine.name} does not pair again by itself"


def _count(members: Iterable[Member], pool: EnginePool) -> int:
    return sum(1 for m in members if m.pool == pool and m.serves)


def order_of(way: Way) -> Iterator[str]:
    """The same, a line each, for whoever approves."""
    if not way.first:
        return
    yield f"those that move and the others cannot serve together: {', '.join(way.why)}"
    if way.switched:
        yield f"users reach {names(way.first)} already; now {names(way.rest)} move, and join them"
        return
    meanwhile = "nothing serves meanwhile" if way.breaks else "the others serve meanwhile"
    yield f"first {names(way.first)}: {meanwhile}; then users are sent there"
    if way.rest:
        yield f"then {names(way.rest)} move, and join them"


def _way(
    instances: Sequence[Instance], first: Collection[str], why: tuple[str, ...], *, switched: bool = False
) -> Way:
    return Way(
        first=tuple(i for i in instances if i.name in first),
        rest=tuple(i for i in instances if i.name not in first),
        switched=switched,
        why=why,
    )


def _members(
    fleet: Hands, before: Wanted, after: Wanted, instances: Sequence[Instance]
) -> tuple[Member, ...]:
    was = {i.name: i for i in before.deployment.instances} if before.deployment else {}
    up = serving(fleet, before) if before.deployment else set()
    hosts = {i.name: {*i.hosts, *(was[i.name].hosts if i.name in was else ())} for i in instances}
    return tuple(Member(i.name, i.pool, frozenset(hosts[i.name]), i.name in up) for i in instances)


def _too_few(wanted: Wanted, members: Sequence[Member], why: Sequence[str]) -> Iterator[Problem]:
    for name in dict.fromkeys(m.pool for m in members):
        pool = wanted.wish.inventory.pools[name]
        up, least = [m.name for m in members if m.pool == name and m.serves], pool.minimum or 1
        yield Problem(
            what=f"pool {name} has {len(up)} instances that serve, too few for two groups of {least}",
            where=pool.source,
            why=f"those that move and the others cannot serve together: {', '.join(why)}; "
            f"these serve now: {', '.join(up) or 'none'}; what shares a host moves together",
            do="bring another one up first, or say --below-minimum: nothing serves while it starts, then",
        )


def _refuse_one_by_one(fleet: Hands, wanted: Wanted, planned: Plan) -> None:
    """PlanRefusedError where a pool would fall below its minimum."""
    changes = planned.stage("engine")
    restarting = {c.instance for c in changes if c.action is Action.RESTART}
    if not restarting or not wanted.deployment:
        return
    rows = waves(wanted.deployment.instances, changes)
    rolling = [tuple(i for i in row if i.name in restarting) for row in rows]
    drained = {d.instance for d in drained_on(fleet, wanted)}
    up = serving(fleet, wanted) - drained
    do = "bring another one up first, or say --below-minimum: requests fail meanwhile, then"
    if problems := tuple(too_few(wanted.wish.inventory.pools, rolling, up, do=do, drained=drained)):
        raise PlanRefusedError(*problems)
