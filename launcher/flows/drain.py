"""drain, undrain: routers send no requests to an instance, until an operator gives it back."""

from __future__ import annotations

from dataclasses import replace

from launcher.execute.hands import Hands
from launcher.flows.targets import unknown
from launcher.flows.up import Approver, Result, approved
from launcher.model.deployment import Deployment, Drained, Instance
from launcher.model.problem import InputError, PlanRefusedError, Problem
from launcher.model.wish import Wanted
from launcher.rollout.idle import await_idle
from launcher.rollout.minimum import too_few
from launcher.rollout.planning import Goal, Proposal, look
from launcher.rollout.run import Run
from launcher.rollout.service import Service, with_drained
from launcher.rollout.traffic import apply_to_routers, plan_routers, told


def instance_of(deployment: Deployment, name: str) -> Instance:
    """The instance that is meant. InputError where there is none, or no router to take it away from."""
    known = [i.name for i in deployment.instances]
    if name not in known:
        raise InputError(unknown(name, "instance", known))
    if not deployment.routers:
        do = f"tell its users, then dsv32-launch down --limit {name}"
        raise InputError(Problem("there is no router: users ask instances themselves", name, do=do))
    return deployment.instance(name)


def drained_with(now: Service, wanted: Wanted, entry: Drained, *, below_minimum: bool) -> tuple[Drained, ...]:
    """What is drained, and this instance. What an operator has drained already stays as it is; a drain of a
    rollout or restart becomes the operator's.

    PlanRefusedError where none of its pool would be left, or, unless `below_minimum`, too few that serve.
    """
    assert wanted.deployment, "what is drained belongs to a deployment"
    before = now.drained
    if any(d.instance == entry.instance and d.by == "operator" for d in before):
        return before
    after = (*(d for d in before if d.instance != entry.instance), entry)
    instances, instance = wanted.deployment.instances, wanted.deployment.instance(entry.instance)
    pool = wanted.wish.inventory.pools[instance.pool]
    if not {i.name for i in instances if i.pool == pool.name} - {d.instance for d in after}:
        raise PlanRefusedError(
            Problem(
                what=f"without {entry.instance} routers have no instance of pool {pool.name}",
                where=pool.source,
                why="they do not start without one, so no request would be answered by anybody",
                do=f"dsv32-launch restart {entry.instance}, or dsv32-launch down to end the service",
            )
        )
    do = "bring another one up first (dsv32-launch up), or say --below-minimum"
    pools = wanted.wish.inventory.pools
    problems = tuple(too_few(pools, instances, [(instance,)], now.reached, do=do))
    if problems and not below_minimum:
        raise PlanRefusedError(*problems)
    return after


def drain(
    fleet: Hands,
    goal: Goal,
    entry: Drained,
    approver: Approver,
    run: Run,
    *,
    below_minimum: bool,
    within_s: float,
) -> Result:
    """Tell the routers, and wait until the instance has ended its requests. PlanRefusedError as
    `drained_with`, and where a host that routes does not answer."""
    fleet.lock(goal.hosts)
    now = look(fleet, goal.wanted)
    drained = drained_with(now, goal.wanted, entry, below_minimum=below_minimum)
    result = _tell_routers(fleet, goal, now, drained, approver, run)
    if result.outcome is None or result.problems or goal.wanted.deployment is None:
        return result
    instance = goal.wanted.deployment.instance(entry.instance)
    idle = await_idle(fleet, goal.wanted, instance, run, within_s=within_s)
    return replace(result, findings=(told(idle, run),))


def undrain(fleet: Hands, goal: Goal, instance: str, approver: Approver, run: Run) -> Result:
    """Have the routers send requests to an instance again."""
    fleet.lock(goal.hosts)
    now = look(fleet, goal.wanted)
    drained = tuple(d for d in now.drained if d.instance != instance)
    return _tell_routers(fleet, goal, now, drained, approver, run)


def _tell_routers(
    fleet: Hands, goal: Goal, now: Service, drained: tuple[Drained, ...], approver: Approver, run: Run
) -> Result:
    wanted = with_drained(goal.wanted, drained)
    here, planned = plan_routers(fleet, wanted)
    proposal = Proposal(wanted, here, planned, now, goal, drained)
    if not approved(fleet, proposal, approver, run):
        return Result(planned, None)
    return Result(planned, apply_to_routers(fleet, here, planned, run))
