"""restart: instances and routers start again; what others stand in for is drained meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from launcher.execute.hands import Hands
from launcher.flows.targets import unknown
from launcher.flows.up import Approver, Result, approved, carry_out
from launcher.model.deployment import Deployment, Instance
from launcher.model.problem import InputError
from launcher.model.wish import Wanted
from launcher.rollout.planning import Goal, propose_restart
from launcher.rollout.run import Run
from launcher.rollout.situation import Options
from launcher.rollout.strategy import restart_set

EVERYTHING, ROUTER = "all", "router"


@dataclass(frozen=True, slots=True)
class Restarted:
    """What a word of the command line says is to restart."""

    instances: tuple[Instance, ...]
    routers: tuple[str, ...] = ()
    """Hosts whose two routers restart."""


def named_by(deployment: Deployment, target: str) -> Restarted:
    """An instance, a pool, what is on a host, the routers, or all. InputError for nothing of that name."""
    everyone, fronts = deployment.instances, [f.host for f in deployment.fronts]
    instances = tuple(i for i in everyone if target in (i.name, i.pool, *i.hosts, EVERYTHING))
    routers = tuple(h for h in fronts if target in (h, ROUTER, EVERYTHING))
    if instances or routers:
        return Restarted(instances, routers)
    words = {w for i in everyone for w in (i.name, i.pool, *i.hosts)} | {*fronts, EVERYTHING}
    known = sorted(words | ({ROUTER} if fronts else set()))
    raise InputError(unknown(target, "instance, pool or host with one", known))


def restart_goal(wanted: Wanted, what: Restarted, options: Options) -> Goal:
    """The restart as a goal: it changes the hosts of all that restarts, and those that route."""
    hosts = {h for i in restart_set(wanted, what.instances) for h in i.hosts}
    return Goal(wanted, frozenset(hosts | wanted.routing_hosts), options)


def restart(fleet: Hands, goal: Goal, what: Restarted, approver: Approver, run: Run) -> Result:
    """Wave by wave, then the routers, host by host. The first wave that does not come up ends it, and stays
    drained.

    PlanRefusedError, with nothing touched, where too few would serve, or for a host that does not answer.
    """
    fleet.lock(goal.hosts)
    proposal = propose_restart(fleet, goal, what.instances, what.routers)
    if not approved(fleet, proposal, approver, run):
        return Result(proposal.plan, None)
    return carry_out(fleet, proposal, run)
