"""up: bring the fleet to what the inventory says, and prove that it serves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from launcher.execute.apply import apply
from launcher.execute.hands import Hands
from launcher.execute.outcome import Outcome
from launcher.flows.halting import halting, reasons
from launcher.flows.plan import limited, plan
from launcher.flows.revisions import recall, remembered
from launcher.flows.run import Approve, Run
from launcher.flows.targets import Limit, routing
from launcher.model.bench import Verdict
from launcher.model.deployment import Deployment, Instance
from launcher.model.finding import Finding, Severity
from launcher.model.plan import Action, Plan
from launcher.model.problem import Exit, LauncherError, PlanRefusedError, Problem
from launcher.model.revision import Entry, tried
from launcher.model.run import Event
from launcher.model.wish import Wanted
from launcher.resolve.exchange import differences
from launcher.resolve.revision import revision_of

# health is imported where something is to serve: a tenth of a run that only provisions would go into it
if TYPE_CHECKING:
    from launcher.flows.away import Away

Kept: TypeAlias = Callable[[Entry], Wanted]
"""What was wanted by a run that hosts remember. LauncherError where that cannot be read any more."""
IDLE_WITHIN_S = 300.0
"""For the requests that an instance has begun before it restarts; then they are cut off, and that is told."""


@dataclass(frozen=True, slots=True)
class Result:
    """How an `up` ended."""

    plan: Plan
    outcome: Outcome | None
    """None if the plan was not approved."""
    findings: tuple[Finding, ...] = ()
    verdict: Verdict = "PASS"
    """What a gate said of it; PASS where none was asked."""
    worse: tuple[Problem, ...] = ()
    """FAIL: what is worse, after which what was before serves again."""

    @property
    def failed(self) -> tuple[Problem, ...]:
        """What of the plan was not done."""
        return self.outcome.problems if self.outcome else ()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that went wrong, in the order in which it was found."""
        return (*self.failed, *(f.problem for f in self.findings if f.problem))

    @property
    def exit_code(self) -> Exit:
        """What the command ends with."""
        if self.outcome and self.outcome.interrupted:
            return Exit.INTERRUPTED
        return Exit.HOSTS_FAILED if self.problems else Exit.DONE


@dataclass(frozen=True, slots=True)
class Boots:
    """What an `up` may do to hosts that need a reboot, or a new driver."""

    reboots: bool = True
    """Boot them anew; else they are told of, and left where that is needed."""
    below_minimum: bool = False
    """Even if too few of a pool serve meanwhile."""


def up(
    fleet: Hands,
    wanted: Wanted,
    limit: Limit,
    approve: Approve,
    run: Run,
    kept: Kept | None = None,
    *,
    boots: Boots | None = None,
) -> Result:
    """Observe, plan, ask, apply stage by stage, verify. The hosts are locked by the caller.

    Where engines run, by what hosts remember, that cannot hand KV to those that are wanted, they move as in a
    rollout: half of them while the others serve, if there are enough. Where hosts need what engines stop for,
    a driver or a reboot, they go instance by instance: PlanRefusedError where too few would serve meanwhile,
    and where both are needed, whatever `boots` says: one after the other is two runs.
    """
    boots = boots or Boots()
    here = limited(wanted, limit.hosts)
    planned = plan(fleet, here)
    run.listener(Event("planned", str(len(planned.changes)), data={"digest": planned.digest}))
    before = kept_apart(fleet, wanted, planned, kept) if kept and not limit.left_out else None
    if before:
        _refuse_both(before, wanted, planned)
        from launcher.flows.rollout import Manner, rollout

        manner = Manner(below_minimum=True, within_s=IDLE_WITHIN_S, returns=False)
        return rollout(fleet, before, wanted, manner, approve, run)
    if wanted.deployment and halting(wanted, planned):
        from launcher.flows.reboots import roll, spared, way_of

        way = way_of(fleet, wanted, planned, below_minimum=boots.below_minimum or not boots.reboots)
        if way:
            go = roll if boots.reboots else spared
            return go(fleet, wanted, planned, way, limit, approve, run)
    if not approve(planned):
        return Result(planned, None)
    with remembered(fleet, wanted, planned, run, whole=not limit.left_out) as note:
        result = make_so(fleet, wanted, planned, run, limit=limit, reboots=boots.reboots)
        if result.exit_code is Exit.DONE:
            note.result = "part" if limit.left_out else "good"
    return result


def kept_apart(fleet: Hands, wanted: Wanted, planned: Plan, kept: Kept) -> Wanted | None:
    """What runs, where its engines and those that are wanted cannot hand KV to each other, and some restart.

    By what hosts remember: all that was tried since it was last good may run, for a run may have been killed.
    """
    restarts = any(c.action is Action.RESTART for c in planned.stage("engine"))
    if not restarts or planned.unreached or not routing(wanted.deployment):
        return None
    entries, _ = recall(fleet, planned.remembered)
    befores = (_before(entry, kept) for entry in tried(entries, revision_of(wanted)))
    return next((before for before in befores if before and differences(before, wanted)), None)


def _refuse_both(before: Wanted, wanted: Wanted, planned: Plan) -> None:
    """PlanRefusedError where hosts need what engines stop for, beside engines that move by halves."""
    runs = before.wish.profile.stack.name
    problems = [
        Problem(
            what=f"{host} needs {reasons(changes)}, for which its engines stop, "
            "and engines apart from those that run",
            where=host,
            why=f"{', '.join(differences(before, wanted))}; hosts go instance by instance, engines apart "
            "half by half: two runs, whatever --no-reboot and --below-minimum say",
            do=f"if `stack: {runs}` needs that, too: dsv32-launch up with it and its settings, then with "
            "these; else dsv32-launch down, then up: nothing serves meanwhile",
        )
        for host, changes in halting(wanted, planned).items()
    ]
    if problems:
        raise PlanRefusedError(*problems)


def _before(entry: Entry, kept: Kept) -> Wanted | None:
    try:
        return kept(entry)
    except LauncherError:
        # nobody keeps it any more, or it had hosts that there are not: as if it were unknown
        return None


def make_so(
    fleet: Hands, wanted: Wanted, planned: Plan, run: Run, *, limit: Limit, reboots: bool = True
) -> Result:
    """Apply a plan that was approved, and verify."""
    here = limited(wanted, limit.hosts)
    away = requests_of(fleet, wanted, planned, run, limit=limit)
    outcome = apply(
        fleet,
        here,
        planned,
        run.listener,
        start_instance=lambda instance: ready(fleet, wanted, instance, run),
        interrupted=run.interrupted,
        requests=away,
        reboots=reboots,
    )
    told = tuple(away.findings) if away else ()
    if run.interrupted():
        return Result(planned, outcome, told)
    return Result(planned, outcome, (*told, *verify(fleet, wanted, limit, outcome, run)))


def apply_part(fleet: Hands, here: Wanted, planned: Plan, run: Run, *, wanted: Wanted) -> Outcome:
    """Apply what a larger move does now, on its own hosts; what starts is waited for, as `wanted` has it."""
    return apply(
        fleet,
        here,
        planned,
        run.listener,
        start_instance=lambda instance: ready(fleet, wanted, instance, run),
        interrupted=run.interrupted,
    )


def requests_of(fleet: Hands, wanted: Wanted, planned: Plan, run: Run, *, limit: Limit) -> Away | None:
    """What keeps requests from instances that restart; None where none does, or a host that routes is not
    among those that this run may change."""
    routes = routing(wanted.deployment)
    restarts = any(c.action is Action.RESTART for c in planned.stage("engine"))
    if not routes or not routes <= limit.hosts or not restarts:
        return None
    from launcher.flows.away import Away

    return Away(fleet, wanted, IDLE_WITHIN_S, run)


def ready(fleet: Hands, wanted: Wanted, instance: Instance, run: Run) -> Problem | None:
    """Wait until an instance is ready; what keeps it from that."""
    from launcher.health.ready import await_ready

    return await_ready(
        fleet,
        wanted,
        instance,
        run.listener,
        save_log=run.save_log,
        interrupted=run.interrupted,
        clock=run.clock,
    )


def verify(fleet: Hands, wanted: Wanted, limit: Limit, outcome: Outcome, run: Run) -> tuple[Finding, ...]:
    """Does it serve? Instances, then routers, then one generation for each pair or instance that is up."""
    if wanted.deployment is None:
        return ()
    from launcher.health.canary import canary
    from launcher.health.router import await_routers

    started = [i for i in limit.instances if outcome.instances.get(i.name) is None]
    findings = readiness(fleet, wanted, started, run)
    serving = frozenset(f.subject for f in findings if f.problem is None)
    reached = serving - {d.instance for d in wanted.deployment.drained}
    if run.interrupted() or limit.left_out or not all_sides(wanted.deployment, reached):
        return findings
    told = {host for host, its in outcome.hosts.items() if its.problem}
    fronts = [f for f in wanted.deployment.fronts if f.host not in told]
    answers = {f.host: await_routers(fleet, wanted, f, run.listener, clock=run.clock) for f in fronts}
    routers = tuple(finding(f"router@{host}", "answers", problem) for host, problem in answers.items())
    if len(fronts) < len(wanted.deployment.fronts) or any(f.problem for f in routers):
        return (*findings, *routers)
    pairs = canary(fleet, wanted, run.listener, serving=reached, nonce=run.id, clock=run.clock)
    if any(f.problem for f in pairs):  # an engine that died of its first request says more than the router
        findings = readiness(fleet, wanted, started, run)
        serving = frozenset(f.subject for f in findings if f.problem is None)
    run.listener(Event("verified", f"{len(serving)} instances ready", data={"serving": sorted(serving)}))
    return (*findings, *routers, *pairs)


def readiness(fleet: Hands, wanted: Wanted, instances: Sequence[Instance], run: Run) -> tuple[Finding, ...]:
    """The verdict on each instance, all watched at once."""
    with ThreadPoolExecutor(len(instances) or 1) as threads:
        verdicts = list(threads.map(lambda i: ready(fleet, wanted, i, run), instances))
    return tuple(finding(i.name, "ready", p) for i, p in zip(instances, verdicts, strict=True))


def finding(subject: str, text: str, problem: Problem | None) -> Finding:
    """The verdict on a thing that was waited for."""
    return (
        Finding(Severity.ERROR, subject, problem.what, problem)
        if problem
        else Finding(Severity.OK, subject, text)
    )


def all_sides(deployment: Deployment, serving: Collection[str]) -> bool:
    """A request needs an instance of each pool."""
    everyone = deployment.instances
    return {i.pool for i in everyone} == {i.pool for i in everyone if i.name in serving}
