"""gated: a rollout that must bear a load as what was before did; else all of it goes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from launcher.bench.keep import document
from launcher.execute.hands import Hands
from launcher.flows.against import Gated
from launcher.flows.away import told
from launcher.flows.load_gate import LoadGate
from launcher.flows.revisions import Note, recall, remembered
from launcher.flows.rollout import Manner, Move, moved, prepared
from launcher.flows.run import Approve, Run
from launcher.flows.up import Result
from launcher.flows.way import order_of
from launcher.model.finding import Finding, Severity, failures
from launcher.model.measurement import Measurement
from launcher.model.problem import Exit, LauncherError, Problem
from launcher.model.revision import Entry
from launcher.model.wish import Wanted
from launcher.resolve.revision import revision_of

BASELINE = "baseline.json"
"""In the run's folder: what the gate was held against."""


def gated_rollout(
    fleet: Hands, before: Wanted, after: Wanted, gate: LoadGate, manner: Manner, approve: Approve, run: Run
) -> Result:
    """As `rollout`, with the load before the first change, where nobody has kept a baseline of it, and after
    the last. Where it is worse then, all of it goes back, by the rules of a rollout.

    A run that was killed is taken up where it was: hosts remember that a gate has failed. InputError as
    `LoadGate.kept` and `LoadGate.baseline`, PlanRefusedError as `rollout`; nothing is moved then.
    """
    last = _last(fleet, after)
    if last and last.goes_back:
        back = prepared(fleet, after, before, replace(manner, returns=False), run)
        return _taken_up(back, last, approve)
    move = prepared(fleet, before, after, manner, run)
    baseline = gate.kept(fleet, before, move.after)
    order = (*_order(gate, baseline, last), *order_of(move.way))
    if not approve(replace(move.planned, order=order)):
        return Result(move.planned, None)
    baseline = baseline or gate.baseline(fleet, before)
    if baseline is None:
        return Result(move.planned, None)
    with remembered(fleet, move.after, move.planned, run) as note:
        result = moved(move)
        if result.exit_code is Exit.DONE and not run.interrupted():
            result = _judged(move, result, gate, baseline, note)
    return result


def _last(fleet: Hands, after: Wanted) -> Entry | None:
    """What hosts noted last, if it was of what is wanted now."""
    entries, _ = recall(fleet, after.wish.inventory.hosts)
    return entries[-1] if entries and entries[-1].revision == revision_of(after) else None


def _order(gate: LoadGate, baseline: Measurement | None, last: Entry | None) -> Iterator[str]:
    """What is measured, a line each, for whoever approves."""
    if last and last.result == "bad":
        yield f"{last.run} went there, and back: {last.fault}"
    name = gate.workload.name
    if baseline:
        yield f"gate: {name} once all has moved, against the baseline that {baseline.run} measured"
    else:
        yield f"gate: {name} now, {gate.method.gate.repeats} times at each point, and once all has moved"
    yield "what is worse then goes back, all of it"


def _judged(move: Move, result: Result, gate: LoadGate, baseline: Measurement, note: Note) -> Result:
    """What the gate says; on FAIL the way back."""
    path = gate.record.keep(BASELINE, document(baseline))
    try:
        found = gate.judged(move.fleet, move.after, baseline)
    except LauncherError as error:
        return _kept(move, result, note, error.problems[0].what)
    if move.run.interrupted():
        return result
    if found.verdict == "FAIL":
        note.bad(_worst(found))
        manner = replace(move.manner, returns=False)
        way = partial(prepared, move.fleet, move.after, move.before, manner, move.run)
        return _back(result, note, _worse(found, path), move.run, way)
    if found.verdict == "CANNOT TELL":
        return _kept(move, result, note, _worst(found))
    note.result = "good"
    passed = Finding(Severity.OK, "gate", f"PASS against {found.before.run}")
    return replace(result, findings=(*result.findings, told(passed, move.run)))


def _kept(move: Move, result: Result, note: Note, why: str) -> Result:
    """It serves, and nobody can say that it is worse: it stays."""
    note.result = "good"
    text = f"CANNOT TELL, and it stays: {why}"
    said = told(Finding(Severity.WARNING, "gate", text), move.run)
    return replace(result, findings=(*result.findings, said), verdict="CANNOT TELL")


def _worst(found: Gated) -> str:
    """The first figure that has the gate's verdict."""
    return next((str(j) for j in found.judged if j.verdict == found.verdict), "nothing could be compared")


def _worse(found: Gated, path: str) -> Problem:
    """`path`: of the baseline."""
    more = [str(j) for j in found.judged if j.verdict == "FAIL"][1:]
    return Problem(
        what=f"gate: {_worst(found)}",
        where=found.after.target,
        why=f"held against {found.before.run}" + (f"; also {'; '.join(more)}" if more else ""),
        do=f"dsv32-launch compare {path} {found.after.run}",
    )


def _taken_up(back: Move, entry: Entry, approve: Approve) -> Result:
    """The way back, on which a run was killed."""
    order = (f"{entry.run} is on its way back: {entry.fault}", *order_of(back.way))
    if not approve(replace(back.planned, order=order)):
        return Result(back.planned, None)
    with remembered(back.fleet, back.before, back.planned, back.run, fault=entry.fault) as note:
        worse = Problem(f"gate: {entry.fault}", entry.run, do="dsv32-launch runs")
        return _back(Result(back.planned, None), note, worse, back.run, lambda: back)


def _back(result: Result, note: Note, worse: Problem, run: Run, turned: Callable[[], Move]) -> Result:
    """All as it was, by the rules of a rollout; `bad` once that serves."""
    findings = [*result.findings, told(Finding(Severity.WARNING, "rollout", f"goes back: {worse.what}"), run)]
    done = False
    try:
        way = moved(turned())
        findings += [*failures(way.failed), *way.findings]
        done = way.exit_code is Exit.DONE and not run.interrupted()
    except LauncherError as error:
        findings += failures(error.problems)
    if done:
        note.result = "bad"
    said = "serves again" if done else "is not all back: give the same command again"
    findings.append(told(Finding(Severity.WARNING, "rollout", f"what was before {said}"), run))
    return replace(result, findings=tuple(findings), verdict="FAIL", worse=(worse,))
