"""up: bring a fleet to what is wanted, and prove that it serves. Every change of a service goes this way."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from launcher.execute.apply import apply
from launcher.execute.hands import Hands
from launcher.execute.outcome import Outcome
from launcher.execute.progress import await_all
from launcher.flows.preflight import Report
from launcher.flows.revisions import remembered
from launcher.health.canary import canary
from launcher.health.ready import await_ready
from launcher.health.router import await_routers
from launcher.model.bench import Verdict
from launcher.model.deployment import Deployment, Instance
from launcher.model.finding import Finding, Severity, failures
from launcher.model.plan import Plan
from launcher.model.problem import Exit, LauncherError, Problem
from launcher.model.run import Event
from launcher.model.wish import Wanted
from launcher.rollout.planning import Goal, Proposal, propose
from launcher.rollout.run import Run
from launcher.rollout.situation import routed
from launcher.rollout.traffic import RoutedTraffic, told


class Approver(Protocol):
    """Whoever examines a change, shows it, and approves it: a command with its user, or a trial."""

    def preflight(self, fleet: Hands, proposal: Proposal) -> Report:
        """All that keeps the change from beginning."""

    def show(self, proposal: Proposal, report: Report) -> None:
        """Show the plan, the order of its moves, and the report."""

    def agrees(self, proposal: Proposal) -> bool:
        """May it be made?"""


@dataclass(frozen=True, slots=True)
class Result:
    """How a change ended."""

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
        """Everything that went wrong: what was not done, then what was found."""
        found = (f.problem for f in self.findings if f.problem)
        return (*self.failed, *(problem for problem in found if problem not in self.failed))

    @property
    def exit_code(self) -> Exit:
        """What the command ends with."""
        if self.outcome and self.outcome.interrupted:
            return Exit.INTERRUPTED
        return Exit.HOSTS_FAILED if self.problems else Exit.DONE


def up(fleet: Hands, goal: Goal, approver: Approver, run: Run, *, go_back_on_failure: bool = False) -> Result:
    """Bring the fleet to the goal. PlanRefusedError where the plan is refused, with nothing touched, and
    where hosts turn out to need what it does not show.

    `go_back_on_failure`: what fails goes back to `goal.before`; by halves, only until users are sent to the
    half that has moved.
    """
    fleet.lock(goal.hosts)
    proposal = propose(fleet, goal)
    if not approved(fleet, proposal, approver, run):
        return Result(proposal.plan, None)
    whole = not (goal.left_out or proposal.plan.rollout.waiting)
    with remembered(fleet, proposal.wanted, proposal.plan, run, whole=whole) as note:
        result = carry_out(fleet, proposal, run)
        if go_back_on_failure and (broken := may_go_back(result, run)):
            back = go_back(fleet, proposal, broken, run)
            result = replace(result, findings=(*result.findings, *back))
        if result.exit_code is Exit.DONE:
            note.result = "good" if whole else "part"
    return result


def approved(fleet: Hands, proposal: Proposal, approver: Approver, run: Run) -> bool:
    """Examine a proposal, show it, and ask. LauncherError where the preflight refuses it."""
    plan = proposal.plan
    run.listener(Event("planned", str(len(plan.changes)), data={"digest": plan.digest}))
    report = approver.preflight(fleet, proposal)
    approver.show(proposal, report)
    report.refuse(run.listener)
    return approver.agrees(proposal)


def carry_out(fleet: Hands, proposal: Proposal, run: Run) -> Result:
    """Make the moves of an approved plan, and look whether it serves."""
    rollout, tells_routers = proposal.plan.rollout, routed(proposal.wanted, proposal.goal.left_out)
    traffic = RoutedTraffic(fleet, proposal, run, proposal.now.drained) if tells_routers else None
    outcome = apply(
        fleet,
        proposal.here,
        proposal.plan,
        run.listener,
        await_ready=lambda instance: ready(fleet, proposal.wanted, instance, run),
        interrupted=run.interrupted,
        traffic=traffic,
    )
    findings = tuple(traffic.findings) if traffic else ()
    ended = outcome.failed and not rollout.independent
    if not (run.interrupted() or ended or rollout.strategy == "restart"):
        findings = (*findings, *verify(fleet, proposal, outcome, run))
    return Result(proposal.plan, outcome, (*findings, *failures(rollout.waiting)))


def go_back(fleet: Hands, proposal: Proposal, problem: Problem, run: Run) -> tuple[Finding, ...]:
    """What ran before, by a rollout in the other direction: it takes up what this one has begun. What would
    refuse to begin it does not: users are better off with what could be brought back."""
    findings = [_warned(f"goes back: {problem.what}", run)]
    done = False
    try:
        back = carry_out(fleet, propose(fleet, backwards(proposal.goal)), run)
        findings += [*failures(back.failed), *back.findings]
        done = back.exit_code is Exit.DONE and not run.interrupted()
    except LauncherError as error:
        findings += failures(error.problems)
    said = "serves again" if done else "is not all back: give the same command again, or dsv32-launch status"
    return (*findings, _warned(f"what was before {said}", run))


def backwards(goal: Goal) -> Goal:
    """From what the goal wants to what ran before, whatever serves meanwhile."""
    assert goal.before, "only a known state can be gone back to"
    options = replace(goal.options, below_minimum=True)
    return Goal(goal.before, frozenset(goal.before.steps), options, before=goal.wanted)


def _warned(text: str, run: Run) -> Finding:
    return told(Finding(Severity.WARNING, "rollout", text), run)


def may_go_back(result: Result, run: Run) -> Problem | None:
    """The problem for which all of it goes back; None where nothing is broken, users reach what is new, or
    the run was interrupted."""
    committed = result.outcome and result.outcome.committed
    broken = [p for p in result.problems if p not in result.plan.rollout.waiting]
    return broken[0] if broken and not (committed or run.interrupted()) else None


def ready(fleet: Hands, wanted: Wanted, instance: Instance, run: Run) -> Problem | None:
    """Wait until an instance is ready; what keeps it from that."""
    try:
        return await_ready(
            fleet,
            wanted,
            instance,
            run.listener,
            save_log=run.save_log,
            interrupted=run.interrupted,
            clock=run.clock,
        )
    except LauncherError as error:
        return error.problems[0]


def verify(fleet: Hands, proposal: Proposal, outcome: Outcome, run: Run) -> tuple[Finding, ...]:
    """Does it serve? Instances, then routers, then one generation for each pair or instance that is up."""
    wanted, left_out = proposal.wanted, set(proposal.goal.left_out)
    if wanted.deployment is None:
        return ()
    left_out |= {problem.where for problem in proposal.plan.rollout.waiting}
    mine = [i for i in wanted.deployment.instances if not left_out & set(i.hosts)]
    expected = [i for i in mine if outcome.instances.get(i.name) is None]
    findings = readiness(fleet, wanted, expected, run)
    serving = frozenset(f.subject for f in findings if f.problem is None)
    reached = serving - {d.instance for d in wanted.deployment.drained}
    if run.interrupted() or left_out or not all_sides(wanted.deployment, reached):
        return findings
    lost = {host for host, its in outcome.hosts.items() if its.problem}
    fronts = [f for f in wanted.deployment.fronts if f.host not in lost]
    answers = {f.host: await_routers(fleet, wanted, f, run.listener, clock=run.clock) for f in fronts}
    routers = tuple(finding(f"router@{host}", "answers", problem) for host, problem in answers.items())
    if len(fronts) < len(wanted.deployment.fronts) or any(f.problem for f in routers):
        return (*findings, *routers)
    pairs = canary(fleet, wanted, run.listener, serving=reached, nonce=run.id, clock=run.clock)
    if any(f.problem for f in pairs):  # an engine that died of its first request says more than the router
        findings = readiness(fleet, wanted, expected, run)
        serving = frozenset(f.subject for f in findings if f.problem is None)
    run.listener(Event("verified", f"{len(serving)} instances ready", data={"serving": sorted(serving)}))
    return (*findings, *routers, *pairs)


def readiness(fleet: Hands, wanted: Wanted, instances: Sequence[Instance], run: Run) -> tuple[Finding, ...]:
    """The verdict on each instance, all watched at once."""
    verdicts = await_all(instances, lambda i: ready(fleet, wanted, i, run))
    return tuple(finding(i.name, "ready", problem) for i, problem in verdicts)


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
