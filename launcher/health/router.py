"""await_routers: the routers and the front of a host, watched until all answer; what the front says is what
users get."""

from __future__ import annotations

from dataclasses import dataclass

from launcher.health.hands import Hands, look_within_s
from launcher.health.state import (
    FrontState,
    RouterState,
    front_questions,
    front_state,
    router_questions,
    router_state,
)
from launcher.model.deployment import Deployment, Front
from launcher.model.problem import Problem
from launcher.model.profile import RouterKind
from launcher.model.run import Event, Listener
from launcher.model.wish import Wanted
from launcher.wait import CLOCK, Clock, wait_for

WITHIN_S = 60.0
"""vllm-router is ready 2 to 6 s after its start, HAProxy at once; the rest is for slow workers."""
POLL_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Entrance:
    """What a host that routes said of itself."""

    routers: tuple[RouterState, ...]
    front: FrontState

    @property
    def failed(self) -> bool:
        """A unit is down for good; one that systemd restarts says `activating`."""
        return "failed" in (self.front.active, *(r.active for r in self.routers))


def await_routers(
    fleet: Hands, wanted: Wanted, front: Front, listener: Listener, *, clock: Clock = CLOCK
) -> Problem | None:
    """Watch until both routers have a healthy worker in each pool and the front passes that on; None then."""
    kind = wanted.wish.profile.router
    assert kind is not None, "a router has a kind"
    deployment = wanted.deployment
    assert deployment is not None, "a router belongs to a deployment"
    seen = wait_for(
        lambda: look(fleet, deployment, front, kind),
        lambda now: isinstance(now, Entrance) and (now.failed or wrong_with(now) is None),
        every_s=POLL_EVERY_S,
        within_s=WITHIN_S,
        clock=clock,
    ).answer
    problem = seen if isinstance(seen, Problem) else wrong_with(seen)
    if problem is None:
        listener(Event("ready", f"answers at {front.url}", front.host, "router"))
    return problem


def look(fleet: Hands, deployment: Deployment, front: Front, kind: RouterKind) -> Entrance | Problem:
    """The state of a front and its routers now, or why they could not be asked."""
    routers = tuple(r for r in deployment.routers if r.host == front.host)
    asked = (*(q for r in routers for q in router_questions(r)), *front_questions(front, kind))
    facts = fleet.ask({front.host: tuple(dict.fromkeys(asked))}, within_s=look_within_s)[front.host]
    if isinstance(facts, Problem):
        what = f"router on {front.host} could not be asked"
        return Problem(what, front.host, facts.what, "dsv32-launch status")
    states = tuple(router_state(r, facts, kind) for r in routers)
    return Entrance(states, front_state(front, facts, kind))


def wrong_with(seen: Entrance) -> Problem | None:
    """The first link of the chain that is broken; None where all hold."""
    for router in seen.routers:
        where, do = f"{router.host}, unit {router.unit}", "dsv32-launch logs router"
        name = f"router {router.slot} on {router.host}"
        if router.active != "active":
            return Problem(f"{name} is {router.active}, not active", where, "", do)
        if not router.ready:
            told = ", ".join(f"{p} {good} of {total} healthy" for p, (good, total) in router.pools.items())
            what = f"{name} is not ready after {WITHIN_S:.0f} s"
            return Problem(what, where, told or "its readiness address does not answer", do)
    front = seen.front
    where, do = f"{front.host}, unit {front.unit}", "dsv32-launch logs front"
    if front.active != "active":
        return Problem(f"front on {front.host} is {front.active}, not active", where, "", do)
    if not front.answers:
        what = f"front on {front.host} does not answer at {front.url} after {WITHIN_S:.0f} s"
        return Problem(what, where, "the routers behind it are ready", do)
    return None
