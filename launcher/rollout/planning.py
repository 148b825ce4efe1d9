"""Planning: what a command would change, in which order, and what refuses it; changes no host."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from launcher.execute.hands import Hands
from launcher.execute.observe import Observed, observe, questions_of
from launcher.execute.planner import facts_digest, make_plan, started_again
from launcher.health.hands import look_within_s
from launcher.model.deployment import Drained, Instance
from launcher.model.facts import Facts, Unknown
from launcher.model.hold import TIME, holds_in
from launcher.model.plan import Action, Change, Plan
from launcher.model.revision import last_by_host
from launcher.model.role import Step
from launcher.model.wish import Wanted
from launcher.rollout.service import Service, probes, service, with_drained
from launcher.rollout.situation import Options, Situation
from launcher.rollout.strategy import restart_moves, restart_set, with_moves
from launcher.steps import turns


@dataclass(frozen=True, slots=True)
class Goal:
    """What a command wants of a fleet."""

    wanted: Wanted
    hosts: frozenset[str]
    """The hosts that it may change."""
    options: Options = field(default_factory=Options)
    before: Wanted | None = None
    """What runs now, where the command knows that."""

    @property
    def left_out(self) -> frozenset[str]:
        """Hosts of the inventory that it must not change."""
        return frozenset(self.wanted.steps) - self.hosts


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a command would do."""

    wanted: Wanted
    """What must be true of the fleet, with what is drained kept from requests."""
    here: Wanted
    """The part of it that the plan is about."""
    plan: Plan
    now: Service
    """What served when it was planned."""
    goal: Goal
    kept: tuple[Drained, ...]
    """What gets no requests before, during and after the moves."""
    remarks: tuple[str, ...] = ()
    """What else is to be known before anybody approves it, a line each."""


def propose(fleet: Hands, goal: Goal) -> Proposal:
    """Ask every host all its questions, compare, and put the changes in order. Hosts are asked once, or twice
    where something is drained."""
    here = limited(goal.wanted, goal.hosts)
    serves = goal.before if goal.before and goal.before.deployment else goal.wanted
    observed = observe(fleet, here, beside=probes(serves))
    now = service(serves, observed.answers)
    wanted = with_drained(goal.wanted, now.stays_drained)
    here = limited(wanted, goal.hosts)
    if wanted is not goal.wanted:  # routers that leave out what is drained are other files: ask about those
        observed = observe(fleet, here, beside=probes(serves))
    planned = replace(
        make_plan(here, observed),
        holds=holds_in(observed.facts.values(), time.strftime(TIME, time.gmtime())),
        remembered=last_by_host(observed.facts),
    )
    plan = with_moves(Situation(wanted, observed, planned, now, goal.options, goal.left_out))
    return Proposal(wanted, here, plan, now, goal, now.stays_drained)


def plan(fleet: Hands, wanted: Wanted) -> Plan:
    """What `up` would change on all hosts."""
    return propose(fleet, Goal(wanted, frozenset(wanted.steps))).plan


def propose_restart(fleet: Hands, goal: Goal, named: Sequence[Instance], routers: Sequence[str]) -> Proposal:
    """RESTART of each process of these instances, or START of each that is down, and of both routers of these
    hosts; nothing else changes."""
    instances = restart_set(goal.wanted, named)
    names = {i.name for i in instances}
    first = only(goal.wanted, lambda s: _restarts(s, names, routers))
    observed = observe(fleet, first, beside=probes(goal.wanted))
    now = service(goal.wanted, observed.answers)
    kept = tuple(d for d in now.drained if d.instance not in names or d.by != "restart")
    wanted = with_drained(goal.wanted, kept)
    here = only(wanted, lambda s: _restarts(s, names, routers))
    if wanted is not goal.wanted:
        observed = observe(fleet, here, beside=probes(goal.wanted))
    changes = started_again(here, observed, (_restart(s, named, wanted) for s in _steps(here)))
    planned = Plan(
        changes=tuple(changes),
        facts={host: facts_digest(facts) for host, facts in observed.facts.items()},
        data_digest=wanted.wish.data_digest,
        unreached=dict(observed.problems),
    )
    now_kept = replace(now, drained=kept)
    situation = Situation(wanted, observed, planned, now_kept, goal.options, goal.left_out)
    plan = restart_moves(situation, named, routers)
    order = [name for move in plan.rollout.moves for name in move.instances]
    by_move = sorted(plan.changes, key=lambda c: order.index(c.instance) if c.instance else len(order))
    return Proposal(wanted, here, replace(plan, changes=tuple(by_move)), now, goal, kept)


def _restarts(step: Step, names: Collection[str], routers: Collection[str]) -> bool:
    if isinstance(step.want, turns.Params):
        return step.host in routers
    return step.instance in names and step.kind == "unit"


def _steps(wanted: Wanted) -> Iterable[Step]:
    return (step for own in wanted.steps.values() for step in own)


def _restart(step: Step, named: Sequence[Instance], wanted: Wanted) -> Change:
    """The restart of a step's unit, whose details its host's answers fill in."""
    engine, asked = wanted.wish.profile.engine, {i.name for i in named} | {""}
    again = f"restart: {engine.name} does not pair again by itself" if engine else ""
    because = "restart" if step.instance in asked else again
    source = f"{step.source}: {because}"
    return Change(step.host, step.stage, step.id, Action.RESTART, "", "", "", source, (), step.instance)


def look(fleet: Hands, wanted: Wanted) -> Service:
    """What serves now."""
    asked = probes(wanted)
    return service(wanted, fleet.ask(asked, within_s=look_within_s) if asked else {})


def as_it_is(fleet: Hands, wanted: Wanted) -> Wanted:
    """What must be true, for whoever only looks: with what operators and rollouts have drained."""
    return with_drained(wanted, look(fleet, wanted).drained)


def respecting(fleet: Hands, wanted: Wanted) -> Wanted:
    """What must be true, with what operators have drained kept from requests."""
    return with_drained(wanted, look(fleet, wanted).stays_drained)


def plan_offline(wanted: Wanted) -> Plan:
    """The plan with no host asked: every step is a change, from something unknown."""
    silence = Unknown("not asked")
    facts = {h: Facts(h, dict.fromkeys(questions_of(steps), silence)) for h, steps in wanted.steps.items()}
    observed = Observed(facts)
    return with_moves(Situation(wanted, observed, make_plan(wanted, observed)))


def limited(wanted: Wanted, hosts: Collection[str]) -> Wanted:
    """What must be true of some hosts only; what serves elsewhere is still known: peers connect to it."""
    return replace(wanted, steps={host: steps for host, steps in wanted.steps.items() if host in hosts})


def only(wanted: Wanted, those: Callable[[Step], bool]) -> Wanted:
    """What must be true by some steps only: nothing else of their hosts is touched."""
    steps = {host: tuple(s for s in own if those(s)) for host, own in wanted.steps.items()}
    return replace(wanted, steps={h: s for h, s in steps.items() if s}, whole=False)
