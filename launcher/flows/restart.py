"""restart: instances go away from requests, start anew as a whole, prove ready, and come back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from launcher.execute.apply import apply
from launcher.execute.hands import Hands
from launcher.execute.observe import observe
from launcher.execute.planner import bind, facts_digest
from launcher.flows.drain import await_idle, of_routers, others, serving, switch, with_entry
from launcher.flows.drained import drained_on
from launcher.flows.targets import unknown
from launcher.flows.up import Approve, Run, ready
from launcher.model.deployment import Deployment, Drained, Instance
from launcher.model.facts import Facts
from launcher.model.finding import Finding, Severity
from launcher.model.plan import Action, Change, Draft, Plan
from launcher.model.problem import InputError, PlanRefusedError, Problem
from launcher.model.wish import Wanted
from launcher.steps import unit

EVERYTHING = "all"
BECAUSE = "restart: "
"""Begins the reason of a drain that a restart made: a later restart may end it."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How it is to be done."""

    rolling: bool
    """One instance after the other; else all at once."""
    below_minimum: bool
    within_s: float
    """Seconds to wait for the requests that an instance has begun."""
    who: str
    when: str
    why: str

    def drained(self, instance: Instance) -> Drained:
        """What is told of an instance that is taken from requests meanwhile."""
        return Drained(instance.name, self.who, self.when, BECAUSE + self.why)


def instances_of(deployment: Deployment, target: str) -> tuple[Instance, ...]:
    """The instances that are meant: one, those of a pool or on a host, or all. InputError for none."""
    everyone = deployment.instances
    found = tuple(i for i in everyone if target in (i.name, i.pool, *i.hosts) or target == EVERYTHING)
    if found:
        return found
    words = (w for i in deployment.instances for w in (i.name, i.pool, *i.hosts))
    raise InputError(unknown(target, "instance, pool or host with one", sorted({*words, EVERYTHING})))


def waves(instances: Sequence[Instance], manner: Manner) -> tuple[tuple[Instance, ...], ...]:
    """Instances that start anew at the same time."""
    return tuple((i,) for i in instances) if manner.rolling else (tuple(instances),)


def refuse_too_few(fleet: Hands, wanted: Wanted, instances: Sequence[Instance], manner: Manner) -> None:
    """PlanRefusedError where a pool would fall below its minimum meanwhile, unless that was allowed."""
    problems = () if manner.below_minimum else tuple(_too_few(fleet, wanted, waves(instances, manner)))
    if problems:
        raise PlanRefusedError(*problems)


def _too_few(fleet: Hands, wanted: Wanted, planned: Iterable[Sequence[Instance]]) -> Iterator[Problem]:
    away = {d.instance for d in drained_on(fleet, wanted)}
    for pool in {i.pool for wave in planned for i in wave}:
        minimum = wanted.wish.inventory.pools[pool].minimum
        up = serving(fleet, wanted, pool) - away
        left = min(len(up - {i.name for i in wave}) for wave in planned)
        if left < minimum:
            yield Problem(
                what=f"pool {pool} would have {left} instances that serve, its minimum is {minimum}",
                where=wanted.wish.inventory.pools[pool].source,
                why=f"these serve now: {', '.join(sorted(up)) or 'none'}",
                do="say --rolling, bring another one up first, or say --below-minimum",
            )


def restart(
    fleet: Hands,
    wanted: Wanted,
    instances: Sequence[Instance],
    manner: Manner,
    approve: Approve,
    run: Run,
) -> tuple[Finding, ...]:
    """Wave by wave; the first that does not come up ends it, and stays away from requests."""
    refuse_too_few(fleet, wanted, instances, manner)
    planned = restarts(fleet, wanted, instances)
    if planned.unreached:
        raise PlanRefusedError(*planned.unreached.values())
    if not approve(planned):
        return ()
    findings: list[Finding] = []
    for wave in waves(instances, manner):
        if run.interrupted():
            break
        findings += _wave(fleet, wanted, wave, manner, run)
        if any(f.problem for f in findings):
            break
    return (*findings, *_peers(wanted, instances))


def restarts(fleet: Hands, wanted: Wanted, instances: Sequence[Instance]) -> Plan:
    """RESTART of each process that runs, START of each that does not, and nothing else."""
    here = _alone(wanted, instances)
    seen = observe(fleet, here)
    changes = [c for host, facts in seen.facts.items() for c in _changes(here, host, facts)]
    order = [i.name for i in instances]
    return Plan(
        changes=tuple(sorted(changes, key=lambda c: order.index(c.instance))),
        facts={host: facts_digest(facts) for host, facts in seen.facts.items()},
        data_digest=wanted.wish.data_digest,
        unreached=dict(seen.problems),
    )


def _alone(wanted: Wanted, instances: Iterable[Instance]) -> Wanted:
    """What must be true of these instances' processes alone: nothing else of their hosts is touched."""
    names = {i.name for i in instances}
    steps = {
        host: tuple(s for s in own if s.instance in names and s.kind == "unit")
        for host, own in wanted.steps.items()
    }
    return replace(wanted, steps={h: s for h, s in steps.items() if s}, whole=False)


def _changes(here: Wanted, host: str, facts: Facts) -> Iterator[Change]:
    for step in here.steps[host]:
        draft = unit.restart(step.want, facts, "restart")
        if draft is None:
            want = step.want
            ops = unit.life(want, Action.START)
            draft = Draft(Action.START, want.name, "stopped", "running", ops, because="restart")
        yield bind(step, draft)


def _wave(
    fleet: Hands, wanted: Wanted, wave: Sequence[Instance], manner: Manner, run: Run
) -> Iterator[Finding]:
    assert wanted.deployment, "what is restarted is deployed"
    before = now = drained_on(fleet, wanted)
    for instance in wave:
        # where nothing else serves its pool, requests fail whether routers know of it or not
        if not wanted.deployment.routers or not others(fleet, wanted, instance, now):
            continue
        now = with_entry(now, manner.drained(instance))
        told = [*_switched(fleet, wanted, now, run, said=f"{instance.name} gets no requests")]
        yield from told
        if any(f.problem for f in told):  # it still gets requests: it is left as it is
            return
        yield _ended(fleet, wanted, instance, manner, run)
    plan = restarts(fleet, wanted, wave)
    if plan.unreached:
        yield from (Finding(Severity.ERROR, h, p.what, p) for h, p in plan.unreached.items())
        return
    outcome = apply(
        fleet,
        _alone(wanted, wave),
        plan,
        run.listener,
        start_instance=lambda instance: ready(fleet, wanted, instance, run),
        interrupted=run.interrupted,
    )
    for problem in outcome.problems:
        yield Finding(Severity.ERROR, problem.where, problem.what, problem)
    if outcome.problems or run.interrupted():
        return
    yield from (Finding(Severity.OK, i.name, "started anew, and ready") for i in wave)
    names = {i.name for i in wave}
    kept = tuple(d for d in before if d.instance not in names or not d.why.startswith(BECAUSE))
    if kept != now:
        yield from _switched(fleet, wanted, kept, run, said=f"{', '.join(sorted(names))} gets requests again")


def _ended(fleet: Hands, wanted: Wanted, instance: Instance, manner: Manner, run: Run) -> Finding:
    """It has ended what it has begun; or it is restarted all the same, and what that cuts off is told."""
    idle = await_idle(
        fleet, wanted, instance, run.listener, within_s=manner.within_s, interrupted=run.interrupted
    )
    return idle if idle.problem is None else Finding(Severity.WARNING, instance.name, f"{idle.text}; cut off")


def _switched(
    fleet: Hands, wanted: Wanted, drained: tuple[Drained, ...], run: Run, *, said: str
) -> Iterator[Finding]:
    here = of_routers(wanted, drained)
    outcome = switch(fleet, here, lambda _: True, run.listener, interrupted=run.interrupted)
    problems = outcome.problems if outcome else ()
    yield from (Finding(Severity.ERROR, p.where, p.what, p) for p in problems)
    if not problems:
        yield Finding(Severity.OK, "router", said)


def _peers(wanted: Wanted, instances: Sequence[Instance]) -> Iterator[Finding]:
    """What the other side needs after this, by the engine's release."""
    engine, deployment = wanted.wish.profile.engine, wanted.deployment
    if not engine or not deployment or engine.repair != "restart-peer":
        return
    pools = {i.pool for i in instances}
    others = sorted({i.pool for i in deployment.instances} - pools)
    for pool in others:
        text = f"{engine.name} does not pair again by itself: restart {pool} too, "
        yield Finding(Severity.WARNING, pool, text + f"dsv32-launch restart {pool} --rolling")
