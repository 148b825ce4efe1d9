"""rollout: a service under load moves from what runs to what is wanted, no request fails; or it goes back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from launcher.execute.hands import Hands
from launcher.execute.surprise import remaining
from launcher.flows.away import away_for, ended, names, switched, told
from launcher.flows.drained import MOVING, drained_on, lasting, respecting
from launcher.flows.halting import halting, reasons
from launcher.flows.plan import limited, plan
from launcher.flows.revisions import remembered
from launcher.flows.run import Approve, Run
from launcher.flows.targets import limit_to
from launcher.flows.up import Result, apply_part, make_so, readiness
from launcher.flows.way import Way, order_of, way_of
from launcher.health.canary import canary_past_router
from launcher.model.deployment import Drained, Instance
from launcher.model.finding import Finding, Severity, failures
from launcher.model.plan import Change, Plan
from launcher.model.problem import Exit, LauncherError, PlanRefusedError, Problem
from launcher.model.role import Stage
from launcher.model.wish import Wanted

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


def rollout(
    fleet: Hands, before: Wanted, after: Wanted, manner: Manner, approve: Approve, run: Run
) -> Result:
    """Show what changes and in which order, ask, move, prove that it serves. The caller has locked the hosts.

    Where engines of `before` and `after` can hand KV to each other, one instance of a pool after the other
    moves, else one half of the service after the other. What fails before users reach anything new is brought
    back to `before`. PlanRefusedError where too few would serve meanwhile, unless the manner allows it.
    """
    move = prepared(fleet, before, after, manner, run)
    if not approve(replace(move.planned, order=tuple(order_of(move.way)))):
        return Result(move.planned, None)
    with remembered(fleet, move.after, move.planned, run) as note:
        result = moved(move)
        if result.exit_code is Exit.DONE and not run.interrupted():
            note.result = "good"
    return result


def _halts(host: str, changes: Sequence[Change]) -> Problem:
    return Problem(
        what=f"{host} needs {reasons(changes)}, for which its engines stop",
        where=host,
        why="a release moves while engines of both run",
        do="dsv32-launch up first, with what runs now",
    )


@dataclass(frozen=True, slots=True)
class Move:
    """A rollout, as it is to be done or is under way."""

    fleet: Hands
    before: Wanted
    after: Wanted
    planned: Plan
    manner: Manner
    run: Run
    way: Way


def prepared(fleet: Hands, before: Wanted, after: Wanted, manner: Manner, run: Run) -> Move:
    """What is to move, and who when. PlanRefusedError as `rollout`."""
    wanted = respecting(fleet, after)
    planned = plan(fleet, wanted)
    if planned.unreached:
        raise PlanRefusedError(*planned.unreached.values())
    if needs := halting(wanted, planned):
        raise PlanRefusedError(*(_halts(host, changes) for host, changes in needs.items()))
    way = way_of(fleet, before, wanted, planned, below_minimum=manner.below_minimum)
    return Move(fleet, before, wanted, planned, manner, run, way)


def moved(move: Move) -> Result:
    """Move it and prove that it serves; what does not come up goes back."""
    return _in_groups(move) if move.way.first else _one_by_one(move)


def _one_by_one(move: Move) -> Result:
    everything = limit_to((), move.after.steps, move.after.deployment)
    result = make_so(move.fleet, move.after, move.planned, move.run, limit=everything)
    if not result.problems or move.run.interrupted() or not move.manner.returns:
        return result
    return replace(result, findings=(*result.findings, *_back(move, result.problems[0])))


def _in_groups(move: Move) -> Result:
    way, findings = move.way, Findings(move.run)
    prepared = False
    if not way.switched:
        for stage in PREPARING:
            findings.add(partial(_stage, move, move.after, stage, move.after.steps))
        prepared = findings.going
        if not way.breaks:
            findings.add(lambda: _taken_away(move))
        findings.add(lambda: _group_moved(move, move.after, way.first))
    # by a run that was killed users may be sent there already, or only be said to be: it is done again
    findings.add(lambda: _sent_there(move))
    if prepared and findings.problem and not move.run.interrupted():
        findings.told += _back(move, findings.problem)
    findings.add(lambda: _group_moved(move, move.after, way.rest, partners=[i.name for i in way.first]))
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
            self.told += failures(error.problems)

    @property
    def problem(self) -> Problem | None:
        """What went wrong first."""
        return next((f.problem for f in self.told if f.problem), None)

    @property
    def going(self) -> bool:
        """All is well, and nobody has asked to stop."""
        return self.problem is None and not self.run.interrupted()


def _taken_away(move: Move) -> Iterator[Finding]:
    """The first group, by routers as they were."""
    run, first = move.run, move.way.first
    gone = (*_kept(move), *(away_for(i, MOVING, run) for i in first))
    return switched(move.fleet, move.before, gone, run, said=f"{names(first)} gets no requests")


def _sent_there(move: Move) -> Iterator[Finding]:
    """Users, by new routers, which are asked for an answer before anybody reaches them."""
    others = (*_kept(move), *(away_for(i, MOVING, move.run) for i in move.way.rest))
    return switched(
        move.fleet, move.after, others, move.run, said=f"users are sent to {names(move.way.first)}"
    )


def _kept(move: Move) -> tuple[Drained, ...]:
    """What people have drained."""
    return lasting(drained_on(move.fleet, move.after))


def _group_moved(
    move: Move, wanted: Wanted, instances: Sequence[Instance], *, partners: Collection[str] = ()
) -> Iterator[Finding]:
    """These instances, which get no new requests: idle, moved, ready, and each asked with each partner."""
    cut_off = move.way.breaks and instances == move.way.first
    for instance in () if cut_off else instances:
        yield ended(move.fleet, wanted, instance, move.manner.within_s, move.run)
    wrong = tuple(_stage(move, wanted, "engine", {h for i in instances for h in i.hosts}))
    yield from wrong
    if wrong or move.run.interrupted():
        return
    found = readiness(move.fleet, wanted, instances, move.run)
    yield from found
    if not any(f.problem for f in found):
        mine = {i.name for i in instances}
        nonce = f"{move.run.id} {names(instances)}"
        yield from canary_past_router(
            move.fleet,
            wanted,
            move.run.listener,
            of=mine,
            serving=partners,
            nonce=nonce,
            clock=move.run.clock,
        )


def _stage(move: Move, wanted: Wanted, stage: Stage, hosts: Collection[str]) -> Iterator[Finding]:
    """What one stage still needs on these hosts; of the way forward only what was approved."""
    here = limited(wanted, hosts)
    now = plan(move.fleet, here)
    changes = now.stage(stage)
    if wanted is move.after:
        changes = remaining(move.planned.changes, now, stage)
    outcome = apply_part(move.fleet, here, replace(now, changes=changes), move.run, wanted=wanted)
    yield from failures(outcome.problems)


def _whole(move: Move, wanted: Wanted) -> Iterator[Finding]:
    """All that is still to be done: routers that know everybody, what is to go; and does it serve?"""
    wanted = respecting(move.fleet, wanted)
    now = plan(move.fleet, wanted)
    everything = limit_to((), wanted.steps, wanted.deployment)
    result = make_so(move.fleet, wanted, now, move.run, limit=everything)
    problems = result.outcome.problems if result.outcome else ()
    yield from failures(problems)
    yield from result.findings


def _back(move: Move, problem: Problem) -> tuple[Finding, ...]:
    """All as it was: what has moved first, while it gets no requests; then routers that know it again."""
    if not move.manner.returns:
        return ()
    findings = Findings(move.run)
    goes = Finding(Severity.WARNING, "rollout", f"goes back: {problem.what}")
    findings.told.append(told(goes, move.run))
    hosts = {h for i in move.way.first for h in i.hosts}
    if hosts and not move.way.breaks:  # on one of several hosts that route users may be sent there already
        findings.add(lambda: _taken_away(move))
    for stage in (*PREPARING, "engine") if hosts else ():
        findings.add(partial(_stage, move, move.before, stage, hosts))
    findings.add(lambda: _whole(move, move.before))
    back = "serves again" if findings.going else "is not all back: dsv32-launch status"
    findings.told.append(told(Finding(Severity.WARNING, "rollout", f"what was before {back}"), move.run))
    return tuple(findings.told)
