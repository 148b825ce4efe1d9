"""rollout: a service under load moves from what runs to what is wanted, no request fails; or it goes back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from launcher.execute.apply import apply
from launcher.execute.hands import Hands
from launcher.execute.surprise import remaining
from launcher.execute.waves import waves
from launcher.flows.away import away_for, ended, names, switched
from launcher.flows.drain import serving
from launcher.flows.drained import MOVING, drained_on, lasting, respecting
from launcher.flows.groups import Member, first_group, one_of_each
from launcher.flows.plan import limited, plan
from launcher.flows.restart_order import both_sides
from launcher.flows.revisions import remembered
from launcher.flows.run import Approve, Run
from launcher.flows.targets import limit_to
from launcher.flows.up import Result, make_so, readiness, ready
from launcher.health.canary import canary_past_router
from launcher.model.deployment import Drained, Instance
from launcher.model.finding import Finding, Severity
from launcher.model.plan import Action, Plan
from launcher.model.problem import Exit, LauncherError, PlanRefusedError, Problem
from launcher.model.role import Stage
from launcher.model.wish import Wanted
from launcher.resolve.exchange import differences

PREPARING: tuple[Stage, ...] = ("host", "runtime", "weights")
"""What no instance that runs notices: another environment lies beside its own."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How it is to be done."""

    below_minimum: bool
    """Even if too few of a pool serve meanwhile."""
    within_s: float
    """Seconds to wait for the requests that an instance has begun."""
    returns: bool = True
    """What does not come up goes back to what was before. Not where that is known to be no good."""


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


def rollout(
    fleet: Hands, before: Wanted, after: Wanted, manner: Manner, approve: Approve, run: Run
) -> Result:
    """Show what changes and in which order, ask, move, prove that it serves. The caller has locked the hosts.

    Where engines of `before` and `after` can hand KV to each other, one instance of a pool after the other
    moves, else one half of the service after the other. What fails before users reach anything new is brought
    back to `before`. PlanRefusedError where too few would serve meanwhile, unless the manner allows it.
    """
    wanted = respecting(fleet, after)
    planned = plan(fleet, wanted)
    if planned.unreached:
        raise PlanRefusedError(*planned.unreached.values())
    move = _Move(fleet, before, wanted, planned, manner, run, way_of(fleet, before, wanted, planned, manner))
    if not approve(replace(planned, order=tuple(order_of(move.way, planned)))):
        return Result(planned, None)
    with remembered(fleet, wanted, planned, run) as note:
        result = _in_groups(move) if move.way.first else _one_by_one(move)
        if result.exit_code is Exit.DONE and not run.interrupted():
            note.result = "good"
    return result


@dataclass(frozen=True, slots=True)
class _Move:
    """A rollout that is under way."""

    fleet: Hands
    before: Wanted
    after: Wanted
    planned: Plan
    manner: Manner
    run: Run
    way: Way


def way_of(fleet: Hands, before: Wanted, after: Wanted, planned: Plan, manner: Manner) -> Way:
    """Who moves when, by what runs now: a run that was killed is taken up where it was."""
    why = (*differences(before, after), *_unpaired(after))
    deployment = after.deployment
    moved = {c.instance for c in planned.stage("engine") if c.instance}
    drained = drained_on(fleet, after)
    away = {d.instance for d in drained} - {d.instance for d in lasting(drained)}
    if not deployment or not deployment.routers or not why or not (moved or away):
        _refuse_one_by_one(fleet, after, planned, manner)
        return Way()
    instances = tuple(i for i in deployment.instances if i.name not in {d.instance for d in lasting(drained)})
    if away:
        others = {i.name for i in instances} - away
        done = bool(others) and not others & moved
        return _way(instances, others if done else away, why, switched=done)
    members = _members(fleet, before, after, instances)
    minimum = {m.pool: after.wish.inventory.pools[m.pool].minimum for m in members}
    first = first_group(members, minimum)
    if first is None and not manner.below_minimum:
        raise PlanRefusedError(*_too_few(after, members, why))
    return replace(_way(instances, first or one_of_each(members), why), breaks=first is None)


def _unpaired(wanted: Wanted) -> Iterator[str]:
    if both_sides(wanted) and wanted.wish.profile.engine:
        yield f"{wanted.wish.profile.engine.name} does not pair again by itself"


def order_of(way: Way, planned: Plan) -> Iterator[str]:
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


def _one_by_one(move: _Move) -> Result:
    everything = limit_to((), move.after.steps, move.after.deployment)
    result = make_so(move.fleet, move.after, move.planned, move.run, limit=everything)
    if not result.problems or move.run.interrupted() or not move.manner.returns:
        return result
    return replace(result, findings=(*result.findings, *_back(move, result.problems[0])))


def _in_groups(move: _Move) -> Result:
    way, findings = move.way, Findings(move.run)
    if not way.switched:
        for stage in PREPARING:
            findings.add(partial(_stage, move, move.after, stage, move.after.steps))
        prepared = findings.going
        if not way.breaks:
            findings.add(lambda: _taken_away(move))
        findings.add(lambda: _moved(move, move.after, way.first))
        findings.add(lambda: _sent_there(move))
        if prepared and findings.problem and not move.run.interrupted():
            findings.told += _back(move, findings.problem)
    findings.add(lambda: _moved(move, move.after, way.rest, partners=[i.name for i in way.first]))
    findings.add(lambda: _whole(move, move.after))
    return Result(move.planned, None, tuple(findings.told))


@dataclass(slots=True)
class Findings:
    """What was found so far; nothing more is done once something is wrong, or the run is to end."""

    run: Run
    told: list[Finding] = field(default_factory=list)

    def add(self, work: Callable[[], Iterable[Finding]]) -> None:
        """Do it, if all has gone well so far."""
        if not self.going:
            return
        try:
            self.told += work()
        except LauncherError as error:
            self.told += (Finding(Severity.ERROR, p.where, p.what, p) for p in error.problems)

    @property
    def problem(self) -> Problem | None:
        """What went wrong first."""
        return next((f.problem for f in self.told if f.problem), None)

    @property
    def going(self) -> bool:
        """All is well, and nobody has asked to stop."""
        return self.problem is None and not self.run.interrupted()


def _taken_away(move: _Move) -> Iterator[Finding]:
    """The first group, by routers as they were."""
    run, first = move.run, move.way.first
    gone = (*_kept(move), *(away_for(i, MOVING, run) for i in first))
    return switched(move.fleet, move.before, gone, run, said=f"{names(first)} gets no requests")


def _sent_there(move: _Move) -> Iterator[Finding]:
    """Users, by new routers, which are asked for an answer before anybody reaches them."""
    others = (*_kept(move), *(away_for(i, MOVING, move.run) for i in move.way.rest))
    return switched(
        move.fleet, move.after, others, move.run, said=f"users are sent to {names(move.way.first)}"
    )


def _kept(move: _Move) -> tuple[Drained, ...]:
    """What people have drained."""
    return lasting(drained_on(move.fleet, move.after))


def _moved(
    move: _Move, wanted: Wanted, instances: Sequence[Instance], *, partners: Collection[str] = ()
) -> Iterator[Finding]:
    """These instances, which get no new requests: idle, moved, ready, and each asked with each partner."""
    cut_off = move.way.breaks and instances == move.way.first
    for instance in () if cut_off else instances:
        yield ended(move.fleet, wanted, instance, move.manner.within_s, move.run)
    told = tuple(_stage(move, wanted, "engine", {h for i in instances for h in i.hosts}))
    yield from told
    if told or move.run.interrupted():
        return
    found = readiness(move.fleet, wanted, instances, move.run)
    yield from found
    if not any(f.problem for f in found):
        mine = {i.name for i in instances}
        nonce = f"{move.run.id} {names(instances)}"
        yield from canary_past_router(
            move.fleet, wanted, move.run.listener, of=mine, serving=partners, nonce=nonce
        )


def _stage(move: _Move, wanted: Wanted, stage: Stage, hosts: Collection[str]) -> Iterator[Finding]:
    """What one stage still needs on these hosts; of the way forward only what was approved."""
    here = limited(wanted, hosts)
    now = plan(move.fleet, here)
    changes = now.stage(stage)
    if wanted is move.after:
        changes = remaining(move.planned.changes, now, stage)
    outcome = apply(
        move.fleet,
        here,
        replace(now, changes=changes),
        move.run.listener,
        start_instance=lambda instance: ready(move.fleet, wanted, instance, move.run),
        interrupted=move.run.interrupted,
    )
    yield from (Finding(Severity.ERROR, p.where, p.what, p) for p in outcome.problems)


def _whole(move: _Move, wanted: Wanted) -> Iterator[Finding]:
    """All that is still to be done: routers that know everybody, what is to go; and does it serve?"""
    wanted = respecting(move.fleet, wanted)
    now = plan(move.fleet, wanted)
    everything = limit_to((), wanted.steps, wanted.deployment)
    result = make_so(move.fleet, wanted, now, move.run, limit=everything)
    told = result.outcome.problems if result.outcome else ()
    yield from (Finding(Severity.ERROR, p.where, p.what, p) for p in told)
    yield from result.findings


def _back(move: _Move, problem: Problem) -> tuple[Finding, ...]:
    """All as it was: what has moved first, while it gets no requests; then routers that know it again."""
    if not move.manner.returns:
        return ()
    findings = Findings(move.run)
    findings.told.append(Finding(Severity.WARNING, "rollout", f"goes back, for {problem.what}"))
    hosts = {h for i in move.way.first for h in i.hosts}
    for stage in (*PREPARING, "engine") if hosts else ():
        findings.add(partial(_stage, move, move.before, stage, hosts))
    findings.add(lambda: _whole(move, move.before))
    back = "serves again" if findings.going else "is not all back: dsv32-launch status"
    findings.told.append(Finding(Severity.WARNING, "rollout", f"what was before {back}"))
    return tuple(findings.told)


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
        up, needed = [m.name for m in members if m.pool == name and m.serves], 2 * max(1, pool.minimum)
        yield Problem(
            what=f"pool {name} has {len(up)} instances that serve, two groups of it need {needed}",
            where=pool.source,
            why=f"those that move and the others cannot serve together: {', '.join(why)}; "
            f"these serve now: {', '.join(up) or 'none'}",
            do="bring another one up first, or say --below-minimum: nothing serves while it starts, then",
        )


def _refuse_one_by_one(fleet: Hands, wanted: Wanted, planned: Plan, manner: Manner) -> None:
    """PlanRefusedError where a pool would fall below its minimum, unless that was allowed."""
    changes = planned.stage("engine")
    restarting = {c.instance for c in changes if c.action is Action.RESTART}
    if manner.below_minimum or not restarting or not wanted.deployment:
        return
    rows = waves(wanted.deployment.instances, changes)
    rolling = [tuple(i for i in row if i.name in restarting) for row in rows]
    up = serving(fleet, wanted) - {d.instance for d in drained_on(fleet, wanted)}
    if problems := tuple(_below(wanted, rolling, up)):
        raise PlanRefusedError(*problems)


def _below(wanted: Wanted, rolling: Sequence[Sequence[Instance]], up: Collection[str]) -> Iterator[Problem]:
    """Each pool that falls below its minimum while one of these waves is away."""
    for name in dict.fromkeys(i.pool for row in rolling for i in row):
        pool = wanted.wish.inventory.pools[name]
        own = {u for u in up if u.startswith(f"{name}-")}
        left = min(len(own - {i.name for i in row}) for row in rolling)
        if left < pool.minimum:
            yield Problem(
                what=f"pool {name} would have {left} instances that serve, its minimum is {pool.minimum}",
                where=pool.source,
                why=f"these serve now: {', '.join(sorted(own)) or 'none'}",
                do="bring another one up first, or say --below-minimum: requests fail meanwhile, then",
            )
