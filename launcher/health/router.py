"""await_router: a router and its front, watched until both answer; the front's answer is what users get."""

from __future__ import annotations

import time

from launcher.health.hands import Hands, look_within_s
from launcher.health.state import RouterState, router_questions, router_state
from launcher.model.deployment import RouterProcess
from launcher.model.problem import Problem
from launcher.model.profile import RouterKind
from launcher.model.run import Event, Listener
from launcher.model.wish import Wanted

# vllm-router is ready 2 to 6 s after its start, HAProxy at once; the rest is for slow workers
within_s = 60.0
poll_every_s = 1.0


def await_router(fleet: Hands, wanted: Wanted, router: RouterProcess, listener: Listener) -> Problem | None:
    """Watch until the router has a healthy worker in each pool and the front passes that on; None then."""
    kind = wanted.wish.profile.router
    assert kind is not None, "a router has a kind"
    start_s = time.monotonic()
    while True:
        state, silence = look(fleet, router, kind)
        if state and state.up:
            listener(Event("ready", f"answers at {state.front_url}", router.host, "router"))
            return None
        waited_s = time.monotonic() - start_s
        if (state and died(state)) or waited_s > within_s:
            return problem_of(router, state, silence, waited_s)
        time.sleep(poll_every_s)


def look(fleet: Hands, router: RouterProcess, kind: RouterKind) -> tuple[RouterState | None, str]:
    """The router's state now, or why it could not be asked."""
    facts = fleet.ask({router.host: router_questions(router, kind)}, within_s=look_within_s)[router.host]
    if isinstance(facts, Problem):
        return None, facts.what
    return router_state(router, facts, kind), ""


def died(state: RouterState) -> bool:
    """One of the two units is down for good; a unit that systemd restarts says `activating`."""
    return "failed" in (state.active, state.front_active)


def problem_of(router: RouterProcess, state: RouterState | None, silence: str, waited_s: float) -> Problem:
    """What keeps this router from serving, the first link of the chain that is broken."""
    where = f"{router.host}, unit {router.unit}"
    do = "dsv32-launch logs router"
    if state is None:
        return Problem(f"router on {router.host} could not be asked", where, silence, "dsv32-launch status")
    if state.active != "active":
        return Problem(f"router on {router.host} is {state.active}, not active", where, "", do)
    if not state.ready:
        told = ", ".join(f"{pool} {good} of {total} healthy" for pool, (good, total) in state.pools.items())
        what = f"router on {router.host} is not ready after {waited_s:.0f} s"
        return Problem(what, where, told or "its readiness address does not answer", do)
    where = f"{router.host}, unit {router.front_unit}"
    if state.front_active != "active":
        return Problem(
            f"front on {router.host} is {state.front_active}, not active",
            where,
            "",
            "dsv32-launch logs front",
        )
    what = f"front on {router.host} does not answer at {state.front_url} after {waited_s:.0f} s"
    return Problem(what, where, "the router behind it is ready", "dsv32-launch logs front")
