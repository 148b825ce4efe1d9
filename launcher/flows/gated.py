"""gated: an upgrade that must bear a load as what ran before did; else all of it goes back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from launcher.bench.keep import document
from launcher.execute.hands import Hands
from launcher.flows.against import Gated
from launcher.flows.load_gate import LoadGate
from launcher.flows.revisions import Note, recall, remembered
from launcher.flows.up import Approver, Result, approved, backwards, carry_out, go_back, may_go_back
from launcher.model.finding import Finding, Severity
from launcher.model.measurement import Measurement
from launcher.model.problem import Exit, LauncherError, Problem
from launcher.model.revision import Entry
from launcher.model.wish import Wanted
from launcher.resolve.revision import revision_of
from launcher.rollout.planning import Goal, Proposal, propose
from launcher.rollout.run import Run
from launcher.rollout.traffic import told

BASELINE = "baseline.json"
"""In the run's folder: what the gate was held against."""


def gated_upgrade(fleet: Hands, goal: Goal, gate: LoadGate, approver: Approver, run: Run) -> Result:
    """As `up`, with the load before the first change, where nobody has kept a baseline of it, and after the
    last. Where it is worse then, all of it goes back.

    A run that was killed is taken up where it was: hosts remember that a gate has failed. InputError as
    `LoadGate.kept` and `LoadGate.baseline`, PlanRefusedError as `up`; nothing is changed then.
    """
    assert goal.before, "a gate compares with what runs now"
    fleet.lock(goal.hosts)
    last = _last(fleet, goal.wanted)
    if last and last.goes_back:
        return _return(fleet, goal, last, approver, run)
    proposal = propose(fleet, goal)
    baseline = gate.kept(fleet, goal.before, proposal.wanted)
    proposal = replace(proposal, remarks=tuple(_remarks(gate, baseline, last)))
    if not approved(fleet, proposal, approver, run):
        return Result(proposal.plan, None)
    baseline = baseline or gate.baseline(fleet, goal.before)
    if baseline is None:
        return Result(proposal.plan, None)
    with remembered(fleet, proposal.wanted, proposal.plan, run) as note:
        result = carry_out(fleet, proposal, run)
        if broken := may_go_back(result, run):
            back = go_back(fleet, proposal, broken, run)
            return replace(result, findings=(*result.findings, *back))
        if result.exit_code is Exit.DONE and not run.interrupted():
            result = _judged(fleet, proposal, result, gate, baseline, note, run)
    return result


def _last(fleet: Hands, wanted: Wanted) -> Entry | None:
    """What hosts noted last, if it was of what is wanted now."""
    entries, _ = recall(fleet, wanted.wish.inventory.hosts)
    return entries[-1] if entries and entries[-1].revision == revision_of(wanted) else None


def _remarks(gate: LoadGate, baseline: Measurement | None, last: Entry | None) -> Iterator[str]:
    """What is measured, a line each, for whoever approves."""
    if last and last.result == "bad":
        yield f"{last.run} went there, and back: {last.fault}"
    name = gate.workload.name
    if baseline:
        yield f"gate: {name} once all has moved, against the baseline that {baseline.run} measured"
    else:
        yield f"gate: {name} now, {gate.method.gate.repeats} times at each point, and once all has moved"
    yield "if the load is worse then, all of it goes back"


def _judged(
    fleet: Hands,
    proposal: Proposal,
    result: Result,
    gate: LoadGate,
    baseline: Measurement,
    note: Note,
    run: Run,
) -> Result:
    """What the gate says; on FAIL the way back."""
    path = gate.record.keep(BASELINE, document(baseline))
    try:
        found = gate.judged(fleet, proposal.wanted, baseline)
    except LauncherError as error:
        return _stays(result, note, error.problems[0].what, run)
    if run.interrupted():
        return result
    if found.verdict == "FAIL":
        note.bad(_worst(found))
        return _gone_back(fleet, proposal, result, _worse(found, path), note, run)
    if found.verdict == "CANNOT TELL":
        return _stays(result, note, _worst(found), run)
    note.result = "good"
    passed = Finding(Severity.OK, "gate", f"PASS against {found.before.run}")
    return replace(result, findings=(*result.findings, told(passed, run)))


def _stays(result: Result, note: Note, why: str, run: Run) -> Result:
    """It serves, and nobody can say that it is worse: it stays."""
    note.result = "good"
    finding = told(Finding(Severity.WARNING, "gate", f"CANNOT TELL, and it stays: {why}"), run)
    return replace(result, findings=(*result.findings, finding), verdict="CANNOT TELL")


def _worst(found: Gated) -> str:
    """The first figure that has the gate's verdict."""
    return next((str(j) for j in found.judged if j.verdict == found.verdict), "nothing could be compared")


def _worse(found: Gated, path: str) -> Problem:
    """What is worse; `path`: of the baseline."""
    more = [str(j) for j in found.judged if j.verdict == "FAIL"][1:]
    return Problem(
        what=f"gate: {_worst(found)}",
        where=found.after.target,
        why=f"held against {found.before.run}" + (f"; also {'; '.join(more)}" if more else ""),
        do=f"dsv32-launch compare {path} {found.after.run}",
    )


def _return(fleet: Hands, goal: Goal, entry: Entry, approver: Approver, run: Run) -> Result:
    """The way back, on which a run was killed."""
    back = propose(fleet, backwards(goal))
    back = replace(back, remarks=(f"{entry.run} is on its way back: {entry.fault}",))
    if not approved(fleet, back, approver, run):
        return Result(back.plan, None)
    with remembered(fleet, goal.wanted, back.plan, run, fault=entry.fault) as note:
        worse = Problem(f"gate: {entry.fault}", entry.run, do="dsv32-launch runs")
        return _gone_back(fleet, replace(back, goal=goal), Result(back.plan, None), worse, note, run)


def _gone_back(
    fleet: Hands, proposal: Proposal, result: Result, worse: Problem, note: Note, run: Run
) -> Result:
    """All as it was; the revision is `bad` once that serves."""
    findings = go_back(fleet, proposal, worse, run)
    if not any(f.problem for f in findings) and not run.interrupted():
        note.result = "bad"
    return replace(result, findings=(*result.findings, *findings), verdict="FAIL", worse=(worse,))
