"""reboots: hosts whose driver or kernel is to change, instance by instance, while the others serve."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from launcher.execute.hands import Hands
from launcher.execute.surprise import remaining
from launcher.flows.away import ended
from launcher.flows.drain import serving
from launcher.flows.drained import MOVING, drained_on, lasting
from launcher.flows.halting import halting, order_of, reasons
from launcher.flows.plan import limited, plan
from launcher.flows.restart import Restart, in_waves
from launcher.flows.restart_order import Manner, Waves, ordered, refused
from launcher.flows.revisions import remembered
from launcher.flows.run import Approve, Run
from launcher.flows.status import status
from launcher.flows.targets import Limit, routing
from launcher.flows.up import IDLE_WITHIN_S, Result, apply_part, make_so
from launcher.health.canary import canary_past_router
from launcher.health.router import await_routers
from launcher.model.deployment import Drained, Instance
from launcher.model.finding import Finding, Severity, failures
from launcher.model.plan import Action, Change, Op, Plan
from launcher.model.problem import Exit, PlanRefusedError, Problem
from launcher.model.role import STAGES
from launcher.model.wish import Wanted
from launcher.steps import unit

ORDER_WITHIN_S = 600.0


@dataclass(frozen=True, slots=True)
class Way:
    """Who goes when."""

    waves: Waves
    """Instances that stop together, in order."""
    routing: tuple[str, ...]
    """Hosts that route and have no engine, one after the other."""
    serve: frozenset[str]
    """What serves now and gets requests."""
    kept: tuple[Drained, ...]
    """What people have drained."""


def way_of(fleet: Hands, wanted: Wanted, planned: Plan, *, below_minimum: bool) -> Way | None:
    """None where nothing runs on the hosts that are to change: then there is nobody to be careful of.

    PlanRefusedError where too few of a pool would serve meanwhile, unless `below_minimum`.
    """
    hosts = halting(wanted, planned)
    if not hosts or not wanted.deployment:
        return None
    routes = tuple(h for h in routing(wanted.deployment) if h in hosts)
    if not routes and not _running(fleet, wanted, hosts):
        return None
    kept = lasting(drained_on(fleet, wanted))
    serve = frozenset(serving(fleet, wanted) - {d.instance for d in drained_on(fleet, wanted)})
    starting = {c.instance for c in planned.changes if c.action is Action.START} - serve
    # what a run has left down comes up first: it serves while the others are away
    chosen = [i for i in wanted.deployment.instances if set(i.hosts) & set(hosts) or i.name in starting]
    manner = _manner(below_minimum=below_minimum)
    waves = ordered(wanted, chosen, manner, serve)
    engines = {h for i in chosen for h in i.hosts}
    way = Way(waves, tuple(h for h in sorted(routes) if h not in engines), serve, kept)
    if not below_minimum:
        away = {d.instance for d in kept}
        problems = (*refused(wanted, waves, manner, serve, away), *_nobody_routes(wanted, routes))
        if problems:
            raise PlanRefusedError(*(replace(p, why=f"{_because(hosts)}; {p.why}") for p in problems))
    return way


def roll(
    fleet: Hands, wanted: Wanted, planned: Plan, way: Way, limit: Limit, approve: Approve, run: Run
) -> Result:
    """Show the order, ask, and go: each wave is drained, stopped, changed, booted, started and asked before
    the next one. The first that does not come back ends it: the rest is untouched and serves."""
    names = [[i.name for i in wave] for wave in way.waves]
    shown = replace(planned, order=tuple(order_of(names, way.routing)))
    if not approve(shown):
        return Result(shown, None)
    it = Restart(fleet, wanted, _manner(below_minimum=True), run, way.kept, because=MOVING)
    with remembered(fleet, wanted, planned, run, whole=not limit.left_out) as note:
        findings = list(in_waves(it, way.waves, way.serve, renew=_Wave(planned).renewed))
        for host in way.routing:
            if _going(findings, run):
                findings += _routing(it, planned, host)
        if not _going(findings, run):
            return Result(shown, None, tuple(findings))
        here = limited(wanted, limit.hosts)
        left = plan(fleet, here)
        changes = tuple(c for s in STAGES for c in remaining(planned.changes, left, s))
        result = make_so(fleet, wanted, replace(left, changes=changes), run, limit=limit)
        if result.exit_code is Exit.DONE and not run.interrupted():
            note.result = "part" if limit.left_out else "good"
    return replace(result, plan=shown, findings=(*findings, *result.findings))


def spared(
    fleet: Hands, wanted: Wanted, planned: Plan, way: Way, limit: Limit, approve: Approve, run: Run
) -> Result:
    """All but the hosts of these waves, which wait for a run that may reboot them; what waits is told."""
    needs = halting(wanted, planned)
    waiting = {h for wave in way.waves for i in wave for h in i.hosts} | set(way.routing)
    told = tuple(_waits(h, needs.get(h, ()), wanted) for h in sorted(waiting & set(needs)))
    there = replace(limit, hosts=limit.hosts - waiting, left_out=(*limit.left_out, *sorted(waiting)))
    there = replace(there, instances=tuple(i for i in limit.instances if not set(i.hosts) & waiting))
    left = plan(fleet, limited(wanted, there.hosts))
    if not approve(replace(left, order=tuple(f.text for f in told))):
        return Result(left, None)
    with remembered(fleet, wanted, left, run, whole=False) as note:
        result = make_so(fleet, wanted, left, run, limit=there, reboots=False)
        if result.exit_code is Exit.DONE:
            note.result = "part"
    return replace(result, findings=(*result.findings, *told))


def _waits(host: str, needs: Sequence[Change], wanted: Wanted) -> Finding:
    boots = [f"{c.subject} shows {c.before}, wanted {c.after}" for c in needs if c.action is Action.REBOOT]
    problem = Problem(
        what=f"{host} is left as it is: its engines would have to stop",
        where=host,
        why="; ".join([f"it needs {reasons(needs)}", *boots]),
        do=f"dsv32-launch up {wanted.wish.inventory.path}, without --no-reboot",
    )
    return Finding(Severity.ERROR, host, problem.what, problem)


@dataclass(frozen=True, slots=True)
class _Wave:
    """What was approved."""

    planned: Plan

    def renewed(
        self, it: Restart, wave: Sequence[Instance], away: Sequence[Drained], partners: Collection[str]
    ) -> Iterator[Finding]:
        """A wave that is idle: stopped, its hosts changed and booted, started, ready, and asked."""
        drained = {d.instance for d in away}
        for instance in wave:
            if instance.name in drained:
                yield ended(it.fleet, it.wanted, instance, it.manner.within_s, it.run)
        stuck = tuple(_stopped(it, wave))
        yield from stuck
        if stuck or it.run.interrupted():
            return
        wrong = tuple(_changed(it, self.planned, {h for i in wave for h in i.hosts}, wave))
        yield from wrong
        if wrong or it.run.interrupted():
            return
        names = [i.name for i in wave]
        yield from (Finding(Severity.OK, name, "its hosts are changed, and it is ready") for name in names)
        nonce = f"{it.run.id} {' '.join(names)}"
        yield from canary_past_router(
            it.fleet, it.wanted, it.run.listener, of=names, serving=partners, nonce=nonce, clock=it.run.clock
        )


def _stopped(it: Restart, wave: Sequence[Instance]) -> Iterator[Finding]:
    """These instances, on all their hosts: a driver is not changed under what runs."""
    ops: dict[str, list[Op]] = {}
    names = {i.name for i in wave}
    for host in {h for i in wave for h in i.hosts}:
        steps = [s for s in it.wanted.steps[host] if s.instance in names]
        ops[host] = [op for s in steps for op in unit.life(s.want, Action.STOP)]

    def stop(host: str) -> Problem | None:
        done = it.fleet.do(host, ops[host], listener=it.run.listener, within_s=ORDER_WITHIN_S, subject="stop")
        return done.error

    for host, problem in it.fleet.map(tuple(ops), stop).items():
        if problem:
            yield Finding(Severity.ERROR, host, problem.what, problem)


def _changed(
    it: Restart, planned: Plan, hosts: Collection[str], wave: Sequence[Instance]
) -> Iterator[Finding]:
    """What these hosts need of what was approved, up to their engines, and the start of what was stopped."""
    here = limited(it.wanted, hosts)
    now = plan(it.fleet, here)
    names = {i.name for i in wave}
    ours = (*planned.changes, *(c for c in now.changes if c.instance in names))
    stages = [s for s in STAGES if s != "router"]
    changes = tuple(c for stage in stages for c in remaining(ours, now, stage))
    outcome = apply_part(it.fleet, here, replace(now, changes=changes), it.run, wanted=it.wanted)
    yield from failures((*now.unreached.values(), *outcome.problems))


def _routing(it: Restart, planned: Plan, host: str) -> Iterator[Finding]:
    """A host that routes, all of it, and then its front answers again."""
    here = limited(it.wanted, [host])
    now = plan(it.fleet, here)
    changes = tuple(c for stage in STAGES for c in remaining(planned.changes, now, stage))
    outcome = apply_part(it.fleet, here, replace(now, changes=changes), it.run, wanted=it.wanted)
    yield from failures(outcome.problems)
    fronts = it.wanted.deployment.fronts if it.wanted.deployment else ()
    for front in fronts if not outcome.problems and not it.run.interrupted() else ():
        if front.host == host:
            problem = await_routers(it.fleet, it.wanted, front, it.run.listener, clock=it.run.clock)
            text = problem.what if problem else "is changed, and routes again"
            yield Finding(Severity.ERROR if problem else Severity.OK, host, text, problem)


def _running(fleet: Hands, wanted: Wanted, hosts: Collection[str]) -> bool:
    assert wanted.deployment, "only what serves is asked"
    return any(p.up for p in status(fleet, wanted, wanted.deployment).processes if p.host in hosts)


def _manner(*, below_minimum: bool) -> Manner:
    return Manner(rolling=True, canary=False, below_minimum=below_minimum, within_s=IDLE_WITHIN_S)


def _going(findings: Sequence[Finding], run: Run) -> bool:
    return not run.interrupted() and not any(f.problem for f in findings if f.severity is Severity.ERROR)


def _nobody_routes(wanted: Wanted, hosts: Collection[str]) -> Iterator[Problem]:
    routes = routing(wanted.deployment)
    if hosts and len(routes) == 1:
        yield Problem(
            what=f"{next(iter(routes))} is the only host that routes",
            where=wanted.wish.inventory.pools["router"].source,
            why="users reach nothing while it boots",
            do="say --below-minimum, or give pool router a second host and the inventory `front.address`",
        )


def _because(hosts: Mapping[str, Sequence[Change]]) -> str:
    host, changes = next(iter(hosts.items()))
    return f"engines stop for {reasons(changes)} on {host}"
