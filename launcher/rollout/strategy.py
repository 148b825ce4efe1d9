"""Strategy: the order in which a plan's changes are made while enough of each pool serve; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from launcher.execute.planner import bind, in_order
from launcher.model.deployment import Instance
from launcher.model.inventory import ENGINE_POOLS
from launcher.model.plan import Action, Change, Plan
from launcher.model.problem import Problem
from launcher.model.role import STAGES, Stage
from launcher.model.rollout import Move, Rollout
from launcher.model.wish import Wanted
from launcher.resolve.exchange import PAIRS, between, kv_identity
from launcher.rollout.groups import Member, first_group, one_of_each, sharing_hosts
from launcher.rollout.minimum import Waves
from launcher.rollout.refusals import (
    both_at_once,
    half_moved,
    one_by_one_refused,
    only_router,
    steps_of,
    too_few_for_halves,
    waits,
    waves_refused,
)
from launcher.rollout.situation import Situation, restarts_peers
from launcher.steps import unit

PREPARING: tuple[Stage, ...] = ("host", "runtime", "weights")
"""What no engine that runs notices: another environment lies beside its own."""
BEFORE_ROUTERS: tuple[Stage, ...] = (*PREPARING, "engine")


def with_moves(it: Situation) -> Plan:
    """The plan with the moves in which its changes are made, and with the changes that those add."""
    needs = disruptive_changes(it.wanted, it.planned)
    moved = any(c.action is Action.RESTART for c in it.planned.stage("engine"))
    if (
        it.routed
        and not it.left_out
        and (moved or it.now.left_drained)
        and (why := incompatible(it, moved=moved))
    ):
        plan = _halves(it, why, needs)
    elif needs and _in_use(it, needs):
        plan = _host_by_host(it, needs) if it.options.reboots else _without(it, needs)
    else:
        plan = _rolling(it)
    return _with_all_needed(it, plan)


def _with_all_needed(it: Situation, plan: Plan) -> Plan:
    """The plan, refused where a host does not answer that its moves need."""
    rollout = plan.rollout
    return replace(plan, rollout=replace(rollout, refused=(*_unreached(it, rollout), *rollout.refused)))


def _unreached(it: Situation, rollout: Rollout) -> tuple[Problem, ...]:
    """Hosts that do not answer, and without which the moves cannot begin: all that the plan is about, if the
    run needs all, for a restart, and where a half must be whole; those that route, if they must be told what
    is drained, or no longer is."""
    needed: set[str] = set()
    if it.options.needs_all or rollout.strategy in ("halves", "restart"):
        needed |= it.planned.unreached.keys()
    if it.routed and (it.now.left_drained or any(move.drained for move in rollout.moves)):
        needed |= it.wanted.routing_hosts
    answers = it.observed.answers.items()
    return tuple(answer for host, answer in answers if host in needed and isinstance(answer, Problem))


def disruptive_changes(wanted: Wanted, planned: Plan) -> Mapping[str, tuple[Change, ...]]:
    """Host → its changes for which engines stop: a reboot, and all changes of roles that say `halts`."""
    roles = {role.name for role in wanted.wish.roles if role.halts}
    found: dict[str, tuple[Change, ...]] = {}
    for change in planned.changes:
        if change.action is Action.REBOOT or change.step.partition("/")[0] in roles:
            found[change.host] = (*found.get(change.host, ()), change)
    return found


def incompatible(it: Situation, *, moved: bool) -> tuple[str, ...]:
    """What keeps engines that run and engines that are wanted from serving together, in words."""
    deployment, profile = it.wanted.deployment, it.wanted.wish.profile
    assert deployment, "only what serves can be incompatible"
    found: dict[str, None] = {}
    for one, other in PAIRS:
        need = kv_identity(profile, deployment, other)
        runs = [it.now.identities.get(i.name, {}) for i in it.instances if i.pool == one]
        found.update(dict.fromkeys(text for identity in runs for text in between(identity, need)))
    if moved and restarts_peers(it.wanted) and profile.engine:
        found[f"{profile.engine.name} does not pair again by itself"] = None
    return tuple(found)


def _rolling(it: Situation, moves: Sequence[Move] = ()) -> Plan:
    """Hosts first, then instances that start, together, then those that serve, one of each pool after the
    other; routers last. `moves` come before all of that."""
    done = {name for move in moves for name in move.instances}
    served = {*it.now.reached, *done}
    life = [c for c in it.planned.changes if c.instance and c.instance not in done]
    rolling = [*moves, *_prepared(it, BEFORE_ROUTERS)]
    waves = _waves(it.instances, life)
    refused = tuple(one_by_one_refused(it, waves, life)) if it.options.keeps_minimum and not moves else ()
    for wave in waves:
        restarts = any(c.action is Action.RESTART for c in life if c.instance == wave[0].name)
        names = {i.name for i in wave}
        move = Move(("engine",), _hosts(wave), tuple(i.name for i in wave))
        if restarts:
            move = _with_stand_ins(it, move, wave, served)
            move = replace(move, canary=bool(move.drained), partners=_in_order(it, served - names))
        elif it.routed:  # what a killed run had drained gets no requests before it is up again
            move = replace(move, drained=_in_order(it, names & it.now.left_drained))
        rolling.append(move)
        served |= names - it.kept_out
    if routers := tuple(dict.fromkeys(c.host for c in it.planned.stage("router"))):
        rolling.append(Move(("router",), routers))
    rollout = Rollout("rolling", tuple(rolling), refused=refused, reboots=it.options.reboots)
    return replace(it.planned, rollout=rollout)


def _prepared(it: Situation, stages: Sequence[Stage]) -> Iterator[Move]:
    """What is changed on hosts before any instance moves."""
    changes = [c for c in it.planned.changes if c.stage in stages and not c.instance]
    if changes:
        there = tuple(s for s in stages if any(c.stage == s for c in changes))
        boots = (c.host for c in changes if c.action is Action.REBOOT)
        yield Move(
            there,
            tuple(dict.fromkeys(c.host for c in changes)),
            boots=tuple(dict.fromkeys(boots)) if it.options.reboots else (),
        )


def _waves(instances: Iterable[Instance], changes: Sequence[Change]) -> Waves:
    """Instances that start from nothing go first and together: they take nothing away. Those that serve now
    go one of a pool after the other, so that the rest of the pool goes on."""
    names = {c.instance for c in changes}
    restarting = {c.instance for c in changes if c.action is Action.RESTART}
    moved = [i for i in instances if i.name in names]
    fresh = tuple(i for i in moved if i.name not in restarting)
    pools = [
        [i for i in moved if i.pool == pool and i.name in restarting]
        for pool in dict.fromkeys(i.pool for i in moved)
    ]
    rows = (tuple(i for i in row if i is not None) for row in zip_longest(*pools))
    return tuple(wave for wave in (fresh, *rows) if wave)


def _with_stand_ins(it: Situation, move: Move, wave: Sequence[Instance], served: Collection[str]) -> Move:
    """The move with those of its instances drained that others of their pool stand in for. Where nothing else
    serves a pool, or no router can be told, requests fail: an outage."""
    away = {i.name for i in wave} | it.kept_out
    ending = {i.pool for i in wave if i.name in served}
    others = {
        pool: [i.name for i in it.instances if i.pool == pool and i.name in served and i.name not in away]
        for pool in dict.fromkeys(i.pool for i in wave)
    }
    return replace(
        move,
        drained=tuple(i.name for i in wave if others[i.pool] and i.name not in it.kept_out)
        if it.routed
        else (),
        serving=tuple(name for names in others.values() for name in names),
        outage=tuple(p for p in others if p in ending and not (others[p] and it.routed)),
    )


def _halves(it: Situation, why: tuple[str, ...], needs: Mapping[str, tuple[Change, ...]]) -> Plan:
    """One half of the service moves while the other serves; then users are sent to it, and the rest follows.

    A rollout that was killed goes on where it was: what it had drained moves first, or, where all others have
    moved already, last.
    """
    if restarts_peers(it.wanted):
        it = _with_restarts_of(
            it, {i.name for i in it.instances}, "its pairs do not survive a restart of one side"
        )
    moved = {c.instance for c in it.planned.changes if c.instance}
    instances = [i for i in it.instances if i.name not in it.kept_out]
    committed = breaks = False
    problems: list[Problem] = []
    if left := it.now.left_drained & {i.name for i in instances}:
        others = {i.name for i in instances} - left
        committed = bool(others) and not others & moved
        first: Collection[str] = others if committed else left
    else:
        members = [Member(i.name, i.pool, frozenset(i.hosts), i.name in it.now.serving) for i in instances]
        minimum = {m.pool: it.wanted.wish.inventory.pools[m.pool].minimum for m in members}
        half = first_group(members, minimum)
        breaks, first = half is None, half or one_of_each(members)
        if breaks and it.options.keeps_minimum and not it.options.below_minimum:
            problems += too_few_for_halves(it, members, why)
    problems += both_at_once(it, why, needs)
    one = tuple(i for i in instances if i.name in first)
    two = tuple(i for i in instances if i.name not in first)
    aside = tuple(i for i in it.instances if i.name in it.kept_out & moved)
    names, rest = tuple(i.name for i in one), tuple(i.name for i in two)
    moves = list(_prepared(it, PREPARING))
    if not committed:
        move = Move(("engine",), _hosts(one), names, canary=True)
        if breaks:
            moves.append(replace(move, outage=tuple(dict.fromkeys(i.pool for i in one))))
        else:
            moves.append(replace(move, drained=names, serving=rest))
    if two or aside:  # what gets no requests anyhow moves with the second half
        last = _in_order(it, {i.name for i in (*two, *aside)})
        move = Move(("engine",), _hosts((*two, *aside)), last, rest, names, canary=True, partners=names)
        moves.append(replace(move, commits=True))
    hosts = tuple(dict.fromkeys(c.host for c in it.planned.changes))
    moves.append(Move(STAGES, hosts, commits=True))
    rollout = Rollout("halves", tuple(moves), why, tuple(problems), reboots=it.options.reboots)
    return replace(it.planned, rollout=rollout)


def _host_by_host(it: Situation, needs: Mapping[str, tuple[Change, ...]]) -> Plan:
    """Each instance is drained and stops while its hosts change and boot; then the hosts that route, one by
    one; then all that is left. Instances that are down start first, to serve while others are away."""
    deployment = it.wanted.deployment
    assert deployment, "only what serves is careful"
    starting = {c.instance for c in it.planned.changes if c.action is Action.START} - it.now.reached
    stopping = restart_set(it.wanted, [i for i in it.instances if set(i.hosts) & set(needs)])
    chosen = [i for i in it.instances if i in stopping or i.name in starting]
    because = f"it stops while {steps_of(next(iter(needs.values())))} changes"
    it = _with_restarts_of(it, {i.name for i in stopping}, because)
    # all of a host's engines stop before it changes
    waves = tuple(sharing_hosts(_restart_waves(it, chosen)))
    routes = sorted(deployment.routing_hosts & set(needs))
    engines = {h for i in chosen for h in i.hosts}
    boots = {c.host for c in it.planned.changes if c.action is Action.REBOOT}
    refused = () if it.options.below_minimum else (*waves_refused(it, waves), *only_router(it, routes))
    host, first = next(iter(needs.items()))
    refused = tuple(replace(p, why=f"engines stop for {steps_of(first)} on {host}; {p.why}") for p in refused)
    moves = [
        replace(
            move,
            stages=BEFORE_ROUTERS,
            stops=True,
            boots=tuple(h for h in move.hosts if h in boots),
        )
        for move in _wave_moves(it, waves)
    ]
    moves += (Move(STAGES, (h,), boots=(h,) if h in boots else ()) for h in routes if h not in engines)
    rest = _rolling(replace(it, planned=_not_made_by(it, moves)), moves)
    rollout = replace(rest.rollout, strategy="host-by-host", refused=refused)
    return replace(it.planned, rollout=rollout)


def _not_made_by(it: Situation, moves: Iterable[Move]) -> Plan:
    """What is left of the plan after these moves."""
    moves = tuple(moves)
    rest = (c for c in it.planned.changes if not any(m.makes(c.host, c.stage, c.instance) for m in moves))
    return replace(it.planned, changes=tuple(rest))


def _without(it: Situation, needs: Mapping[str, tuple[Change, ...]]) -> Plan:
    """All but the hosts that need their engines to stop, and the hosts of those engines: they wait."""
    waiting = set(needs) | {h for i in it.instances if set(i.hosts) & set(needs) for h in i.hosts}
    left = replace(it.planned, changes=tuple(c for c in it.planned.changes if c.host not in waiting))
    plan = _rolling(replace(it, planned=left))
    problems = tuple(waits(it, host, needs[host]) for host in sorted(needs))
    return replace(plan, rollout=replace(plan.rollout, waiting=problems))


def restart_moves(it: Situation, chosen: Sequence[Instance], routers: Sequence[str]) -> Plan:
    """Restarts alone: instances wave by wave, then the two routers of each of these hosts in turns."""
    waves = _restart_waves(it, chosen)
    refused = () if it.options.below_minimum else tuple(waves_refused(it, waves))
    refused = (*half_moved(it), *refused)
    moves = (*_wave_moves(it, waves), *(Move(("router",), (host,)) for host in routers))
    plan = replace(it.planned, rollout=Rollout("restart", moves, refused=refused))
    return _with_all_needed(it, plan)


def _wave_moves(it: Situation, waves: Waves) -> Iterator[Move]:
    """Each wave is drained while those before it, and what else serves, take the requests."""
    done: set[str] = set()
    for wave in waves:
        names = {i.name for i in wave}
        served = {*it.now.reached, *done} - it.kept_out
        move = _with_stand_ins(it, Move(("engine",), _hosts(wave), tuple(i.name for i in wave)), wave, served)
        # where pairs do not survive a restart, an instance must not meet one that knew its earlier life
        partners = done if restarts_peers(it.wanted) else served | done
        yield replace(move, canary=True, partners=_in_order(it, partners - names))
        done |= names


def restart_set(wanted: Wanted, named: Sequence[Instance]) -> tuple[Instance, ...]:
    """The instances that restart because of these."""
    everyone = named and restarts_peers(wanted) and wanted.deployment
    return everyone.instances if everyone else tuple(named)


def _restart_waves(it: Situation, chosen: Sequence[Instance]) -> Waves:
    """Which instances restart together. What gets no requests goes first.

    Where a pair does not survive the end of one side, everything that was ever paired restarts: half of each
    pool while the other half serves, so that no instance meets one that knew an earlier life of it; or all at
    once, where halves cannot be and too few may serve.
    """
    if not chosen:
        return ()
    first = sorted(chosen, key=lambda i: i.name in it.now.reached)
    if restarts_peers(it.wanted):
        halves = _peer_halves(it, first)
        fine = not it.options.below_minimum or not any(waves_refused(it, halves))
        return halves if fine else (it.instances,)
    if it.options.order == "rolling":
        return tuple((i,) for i in first)
    together = (tuple(first[:1]), tuple(first[1:]))
    return together if it.options.order == "canary" and first[1:] else (tuple(first),)


def _peer_halves(it: Situation, first: Sequence[Instance]) -> Waves:
    one: list[Instance] = []
    for pool in ENGINE_POOLS:
        own = [i for i in it.instances if i.pool == pool]
        own.sort(key=lambda i: (i.name in it.now.reached, i not in first))
        one += own[: max(1, len(own) // 2)]
    other = tuple(i for i in it.instances if i not in one)
    return (tuple(one), other) if other else (tuple(one),)


def _in_use(it: Situation, needs: Collection[str]) -> bool:
    """Does an engine run on one of these hosts, or do users reach engines through one?"""
    deployment = it.wanted.deployment
    routes = deployment.routing_hosts if deployment and it.now.serving else frozenset()
    return bool(deployment) and bool((routes | it.now.engine_hosts) & set(needs))


def _with_restarts_of(it: Situation, names: Collection[str], because: str) -> Situation:
    """With a RESTART of each process of these instances that runs and is not in the plan yet."""
    have = {(c.host, c.step) for c in it.planned.changes if c.instance}
    added = (
        replace(bind(step, draft), forced=True)
        for host, facts in it.observed.facts.items()
        for step in it.wanted.steps[host]
        if step.instance in names and (host, step.id) not in have
        if (draft := unit.restart(step.want, facts, because))
    )
    changes = in_order(it.wanted, (*it.planned.changes, *added))
    return replace(it, planned=replace(it.planned, changes=changes))


def _hosts(instances: Iterable[Instance]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(h for i in instances for h in i.hosts))


def _in_order(it: Situation, names: Collection[str]) -> tuple[str, ...]:
    return tuple(i.name for i in it.instances if i.name in names)
