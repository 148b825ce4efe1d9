"""Traffic: routers that send requests past what moves, and the canary of what has moved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from launcher.execute.apply import apply
from launcher.execute.hands import Hands
from launcher.execute.observe import observe
from launcher.execute.outcome import Outcome
from launcher.execute.planner import make_plan
from launcher.health.canary import canary_past_router
from launcher.model.deployment import Drained, DrainedBy, Instance
from launcher.model.finding import Finding, Severity
from launcher.model.plan import Plan
from launcher.model.problem import PlanRefusedError, Problem
from launcher.model.rollout import Move, Rollout
from launcher.model.run import Event, Listener
from launcher.model.wish import Wanted
from launcher.rollout.idle import await_idle
from launcher.rollout.planning import Proposal, look, only
from launcher.rollout.run import Run
from launcher.rollout.service import with_drained


@dataclass(slots=True)
class RoutedTraffic:
    """`execute.progress.Traffic` by the routers of a deployment."""

    fleet: Hands
    proposal: Proposal
    run: Run
    drained: tuple[Drained, ...]
    """What routers send no requests to now."""
    findings: list[Finding] = field(default_factory=list)

    def drain(self, move: Move | None) -> Mapping[str, Problem]:
        """Tell the routers, then wait until each instance that they have just drained is idle.

        PlanRefusedError where nothing serves any more that was to take the requests meanwhile.
        """
        if move and not (move.instances or "router" in move.stages):
            return {}  # a move of hosts alone leaves routers as they are
        before = {d.instance for d in self.drained}
        now = (*self.proposal.kept, *(self._entry(name) for name in (move.drained if move else ())))
        if before == {d.instance for d in now}:
            return {}
        routed = self._routed(move)
        going = [name for name in (d.instance for d in now) if name not in before]
        if move and going:
            _refuse_without_stand_in(self.fleet, routed, move, going)
        stuck = self._switch(routed, now)
        if going and not stuck and routed.deployment:
            within_s = self.proposal.goal.options.idle_within_s
            instances = [routed.deployment.instance(name) for name in going]
            with ThreadPoolExecutor(len(going)) as threads:
                idle = threads.map(lambda i: ended(self.fleet, routed, i, within_s, self.run), instances)
                self.findings.extend(idle)
        return stuck

    def check(self, move: Move) -> Problem | None:
        """One request past the routers for each pair with an instance that moved; the first problem."""
        nonce = f"{self.run.id} {' '.join(move.instances)}"
        found = canary_past_router(
            self.fleet,
            self.proposal.wanted,
            self.run.listener,
            of=move.instances,
            serving=move.partners,
            nonce=nonce,
            clock=self.run.clock,
        )
        self.findings += found
        return next((f.problem for f in found if f.problem), None)

    def _entry(self, name: str) -> Drained:
        by: DrainedBy = "restart" if self.proposal.plan.rollout.strategy == "restart" else "rollout"
        return Drained(name, self.run.who, self.run.when, self.run.why or self.run.flow, by)

    def _routed(self, move: Move | None) -> Wanted:
        """Whose routers: those that run, until users are sent to what is new."""
        before, halves = self.proposal.goal.before, self.proposal.plan.rollout.strategy == "halves"
        return before if before and halves and move and not move.commits else self.proposal.wanted

    def _switch(self, routed: Wanted, now: tuple[Drained, ...]) -> Mapping[str, Problem]:
        outcome = switch(self.fleet, with_drained(routed, now), self.run)
        if outcome.problems:
            by_host = {host: its.problem for host, its in outcome.hosts.items() if its.problem}
            return by_host or dict.fromkeys(outcome.hosts, outcome.problems[0])
        if outcome.interrupted:
            return {}
        was, will = ([d.instance for d in entries] for entries in (self.drained, now))
        if gone := [name for name in will if name not in was]:
            self._tell(f"{', '.join(gone)} gets no requests")
        if back := [name for name in was if name not in will]:
            self._tell(f"{', '.join(back)} gets requests again")
        self.drained = now
        return {}

    def _tell(self, text: str) -> None:
        self.findings.append(told(Finding(Severity.OK, "router", text), self.run))


def switch(fleet: Hands, wanted: Wanted, run: Run) -> Outcome:
    """Routers as they are wanted, users taken over without a failed request.

    PlanRefusedError where a host that routes does not answer: it would go on as before.
    """
    here, planned = plan_routers(fleet, wanted)
    if planned.rollout.refused:
        raise PlanRefusedError(*planned.rollout.refused)
    return apply_to_routers(fleet, here, planned, run)


def apply_to_routers(fleet: Hands, here: Wanted, planned: Plan, run: Run) -> Outcome:
    """What `plan_routers` has planned."""
    return apply(
        fleet,
        here,
        planned,
        _without_moves(run.listener),
        await_ready=lambda _: None,
        interrupted=run.interrupted,
    )


def plan_routers(fleet: Hands, wanted: Wanted) -> tuple[Wanted, Plan]:
    """What must be true of the routers alone, and what that changes."""
    here = of_routers(wanted)
    planned = make_plan(here, observe(fleet, here))
    hosts = tuple(dict.fromkeys(c.host for c in planned.changes))
    moves = (Move(("router",), hosts),) if hosts else ()
    refused = tuple(planned.unreached.values())
    return here, replace(planned, rollout=Rollout(moves=moves, refused=refused))


def of_routers(wanted: Wanted) -> Wanted:
    """What must be true of the routers alone: nothing else of their hosts is touched."""
    hosts = {r.host for r in wanted.deployment.routers} if wanted.deployment else set()
    return only(wanted, lambda step: step.role == "router" and step.host in hosts)


def _without_moves(listener: Listener) -> Listener:
    """Routers are told within a move; it is no move of its own."""
    return lambda event: None if event.kind == "move-started" else listener(event)


def _refuse_without_stand_in(fleet: Hands, wanted: Wanted, move: Move, going: Iterable[str]) -> None:
    """PlanRefusedError where a pool would lose its last instance to the move: the fleet has changed since the
    move was planned."""
    assert wanted.deployment, "what is drained belongs to a deployment"
    now = look(fleet, wanted).serving & set(move.serving)
    pools = {i.name: i.pool for i in wanted.deployment.instances}
    for pool in dict.fromkeys(pools[name] for name in going):
        planned = [name for name in move.serving if pools[name] == pool]
        if planned and not now & set(planned):
            raise PlanRefusedError(
                Problem(
                    what=f"{', '.join(planned)} was to take the requests of pool {pool}, and serves no more",
                    where=planned[0],
                    why="the fleet has changed since the plan was made",
                    do="dsv32-launch status, then dsv32-launch plan",
                )
            )


def ended(fleet: Hands, wanted: Wanted, instance: Instance, within_s: float, run: Run) -> Finding:
    """Wait until the instance is idle; requests that are cut off at the end of the time are reported."""
    idle = await_idle(fleet, wanted, instance, run, within_s=within_s)
    if idle.problem:
        idle = Finding(Severity.WARNING, instance.name, f"{idle.text}; cut off")
    return told(idle, run)


def told(finding: Finding, run: Run) -> Finding:
    """The finding, and an event for it."""
    run.listener(
        Event("finding", finding.text, subject=finding.subject, data={"severity": finding.severity.name})
    )
    return finding
