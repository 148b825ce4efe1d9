"""restart: instances go, start anew as a whole, answer, and come back; routers take turns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from launcher.execute.hands import Hands
from launcher.execute.observe import observe
from launcher.execute.planner import bind, facts_digest
from launcher.flows.away import away_for, ended
from launcher.flows.drain import of_routers, serving, switch, with_entry
from launcher.flows.drained import drained_on
from launcher.flows.plan import limited
from launcher.flows.restart_order import BECAUSE, Manner, Meant, Waves, both_sides, ordered, refused
from launcher.flows.run import Approve, Run
from launcher.flows.up import apply_part
from launcher.health.canary import canary_past_router
from launcher.model.deployment import Drained, Instance
from launcher.model.facts import Facts
from launcher.model.finding import Finding, Severity, failures
from launcher.model.plan import Action, Draft, Plan
from launcher.model.problem import PlanRefusedError
from launcher.model.role import Step
from launcher.model.wish import Wanted
from launcher.steps import turns, unit


@dataclass(frozen=True, slots=True)
class Restart:
    """What all of one restart have in common."""

    fleet: Hands
    wanted: Wanted
    manner: Manner
    run: Run
    kept: tuple[Drained, ...]
    """What operators keep from requests: before, meanwhile and after."""
    because: str = BECAUSE
    """Begins the reason of what it drains itself; by it a later run knows what it may give back."""


def restart(
    fleet: Hands, wanted: Wanted, meant: Meant, manner: Manner, approve: Approve, run: Run
) -> tuple[Finding, ...]:
    """Wave by wave, then the routers, host by host; the first that does not come up ends it, and stays away
    from requests. PlanRefusedError, with nothing touched, where too few would serve, or for a silent host."""
    drained = drained_on(fleet, wanted)
    up = serving(fleet, wanted) - {d.instance for d in drained}
    waves = ordered(wanted, meant.instances, manner, up)
    names = {i.name for wave in waves for i in wave}
    kept = tuple(d for d in drained if d.instance not in names or not d.why.startswith(BECAUSE))
    away = {d.instance for d in kept}
    if problems := () if manner.below_minimum else tuple(refused(wanted, waves, manner, up, away)):
        raise PlanRefusedError(*problems)
    it = Restart(fleet, wanted, manner, run, kept)
    engines = restarts(it, [i for wave in waves for i in wave], named=meant.instances)
    planned = _joined(engines, routers_anew(it, meant.routing))
    if planned.unreached:
        raise PlanRefusedError(*planned.unreached.values())
    if not approve(planned):
        return ()
    findings = list(in_waves(it, waves, up))
    for host in meant.routing:
        if run.interrupted() or any(f.problem for f in findings):
            break
        findings += _routers(it, host)
    return tuple(findings)


def restarts(it: Restart, instances: Sequence[Instance], *, named: Collection[Instance]) -> Plan:
    """RESTART of each process that runs, START of each that does not, and nothing else."""
    engine, asked = it.wanted.wish.profile.engine, {i.name for i in named}

    def anew(step: Step, facts: Facts) -> Draft:
        again = f"restart: {engine.name} does not pair again by itself" if engine else ""
        because = "restart" if step.instance in asked else again
        draft = unit.restart(step.want, facts, because)
        ops = unit.life(step.want, Action.START)
        return draft or Draft(Action.START, step.want.name, "stopped", "running", ops, because=because)

    return _plan(it, _alone(it.wanted, instances), anew, [i.name for i in instances])


def routers_anew(it: Restart, hosts: Collection[str]) -> Plan:
    """RESTART of both routers of each of these hosts."""
    here = _routers_alone(it, hosts)
    return _plan(it, here, lambda step, facts: turns.restart(step.want, facts, "restart"), [""])


def _plan(it: Restart, here: Wanted, draft: Callable[[Step, Facts], Draft], order: Sequence[str]) -> Plan:
    seen = observe(it.fleet, here)
    changes = [bind(s, draft(s, facts)) for host, facts in seen.facts.items() for s in here.steps[host]]
    return Plan(
        changes=tuple(sorted(changes, key=lambda c: order.index(c.instance))),
        facts={host: facts_digest(facts) for host, facts in seen.facts.items()},
        data_digest=it.wanted.wish.data_digest,
        unreached=dict(seen.problems),
    )


def _joined(one: Plan, other: Plan) -> Plan:
    facts = {h: one.facts.get(h, "") + other.facts.get(h, "") for h in {**one.facts, **other.facts}}
    unreached = {**one.unreached, **other.unreached}
    return replace(one, changes=(*one.changes, *other.changes), facts=facts, unreached=unreached)


def _alone(wanted: Wanted, instances: Iterable[Instance]) -> Wanted:
    """What must be true of these instances' processes alone: nothing else of their hosts is touched."""
    names = {i.name for i in instances}
    return _only(wanted, lambda s: s.instance in names and s.kind == "unit")


def _routers_alone(it: Restart, hosts: Collection[str]) -> Wanted:
    here = limited(of_routers(it.wanted, it.kept), hosts)
    return _only(here, lambda s: isinstance(s.want, turns.Params))


def _only(wanted: Wanted, those: Callable[[Step], bool]) -> Wanted:
    steps = {host: tuple(s for s in own if those(s)) for host, own in wanted.steps.items()}
    return replace(wanted, steps={h: s for h, s in steps.items() if s}, whole=False)


Anew: TypeAlias = Callable[
    [Restart, Sequence[Instance], Sequence[Drained], Collection[str]], Iterator[Finding]
]
"""A wave that gets no requests any more comes up anew, and is asked by way of each pair with its partners."""


def in_waves(
    it: Restart, waves: Waves, serve: Collection[str], *, renew: Anew | None = None
) -> Iterator[Finding]:
    """Each wave while those before it, and what else serves, take the requests; `renew`: by a restart."""
    done: set[str] = set()
    last: tuple[Instance, ...] = ()
    for wave in waves:
        away = _away(it, wave, {*done, *serve})
        # where pairs do not survive it, nobody meets who knew an earlier life of it
        partners = done if both_sides(it.wanted) else {*done, *serve}
        for part in (partial(_switched, it, away, last), partial(renew or _anew, it, wave, away, partners)):
            findings = [*part()]
            yield from findings
            if it.run.interrupted() or any(f.problem for f in findings):
                return
        done |= {i.name for i in wave}
        last = wave
    yield from _switched(it, it.kept, last)


def _away(it: Restart, wave: Sequence[Instance], serve: Collection[str]) -> tuple[Drained, ...]:
    """What gets no requests while a wave starts anew: it, where others of its pool do. Where none does, they
    fail whether routers know of it or not."""
    out = {d.instance for d in it.kept} | {i.name for i in wave}
    now = it.kept
    for instance in wave:
        others = {name for name in serve if name.startswith(f"{instance.pool}-")} - out
        if others and it.wanted.deployment and it.wanted.deployment.routers:
            now = with_entry(now, away_for(instance, it.because, it.run))
    return now


def _switched(it: Restart, away: tuple[Drained, ...], back: Sequence[Instance]) -> Iterator[Finding]:
    """Routers that keep to this, where they do not yet; `back`: what they take again."""
    here = of_routers(it.wanted, away)
    outcome = switch(it.fleet, here, lambda _: True, it.run)
    if outcome is None or outcome.problems or not outcome.hosts:
        problems = outcome.problems if outcome else ()
        yield from failures(problems)
        return
    kept = {d.instance for d in it.kept}
    taken = ", ".join(d.instance for d in away if d.instance not in kept)
    given = ", ".join(i.name for i in back if i.name not in kept)
    told = [f"{taken} gets no requests" if taken else "", f"{given} gets requests again" if given else ""]
    yield Finding(Severity.OK, "router", "; ".join(text for text in told if text) or "as it was before")


def _anew(
    it: Restart, wave: Sequence[Instance], away: Sequence[Drained], partners: Collection[str]
) -> Iterator[Finding]:
    """A wave that is idle, started anew, ready, and asked by way of each pair with its partners."""
    drained = {d.instance for d in away}
    yield from (ended(it.fleet, it.wanted, i, it.manner.within_s, it.run) for i in wave if i.name in drained)
    plan = restarts(it, wave, named=wave)
    if plan.unreached:
        yield from (Finding(Severity.ERROR, h, p.what, p) for h, p in plan.unreached.items())
        return
    outcome = apply_part(it.fleet, _alone(it.wanted, wave), plan, it.run, wanted=it.wanted)
    yield from failures(outcome.problems)
    if outcome.problems or it.run.interrupted():
        return
    names = [i.name for i in wave]
    yield from (Finding(Severity.OK, name, "started anew, and ready") for name in names)
    nonce = f"{it.run.id} {' '.join(names)}"
    yield from canary_past_router(
        it.fleet, it.wanted, it.run.listener, of=names, serving=partners, nonce=nonce, clock=it.run.clock
    )


def _routers(it: Restart, host: str) -> Iterator[Finding]:
    """Both routers of a host, in turns."""
    plan = routers_anew(it, [host])
    outcome = apply_part(it.fleet, _routers_alone(it, [host]), plan, it.run, wanted=it.wanted)
    yield from failures(outcome.problems)
    if not outcome.problems and not it.run.interrupted():
        yield Finding(Severity.OK, f"router@{host}", "both started anew, in turns")
