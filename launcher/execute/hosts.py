"""Changes of many hosts in one round: a request a host, hosts in parallel, results by host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from launcher.execute.batch import WITHIN_S, batch
from launcher.execute.progress import Progress
from launcher.model.plan import Change, Op
from launcher.model.problem import Problem
from launcher.model.run import Event, EventKind


@dataclass(frozen=True, slots=True)
class _Result:
    done: tuple[Change, ...]
    problem: Problem | None = None


def by_host(changes: Iterable[Change]) -> dict[str, list[Change]]:
    """Changes grouped, hosts in the order in which they come up."""
    found: dict[str, list[Change]] = {}
    for change in changes:
        found.setdefault(change.host, []).append(change)
    return found


def round_of(progress: Progress, changes: Mapping[str, Sequence[Change]]) -> tuple[Change, ...]:
    """Do each host's changes; a host that fails is lost. The changes that were done."""
    results = progress.fleet.map(tuple(changes), lambda host: _do(progress, host, changes[host]))
    done: list[Change] = []
    for host, result in results.items():
        if isinstance(result, Problem):
            progress.lose_host(host, result)
            continue
        done.extend(result.done)
        if result.problem:
            progress.lose_host(host, result.problem)
    return tuple(done)


def stop_on(progress: Progress, ops: Mapping[str, Sequence[Op]]) -> dict[str, Problem]:
    """Stop instances, all hosts at once, by each host's ops; host → why they could not be stopped there."""

    def stop(host: str) -> Problem | None:
        within_s = sum(WITHIN_S[op.verb] for op in ops[host])
        done = progress.fleet.do(
            host, ops[host], listener=progress.listener, within_s=within_s, subject="stop"
        )
        return done.error

    ended = progress.fleet.map(tuple(ops), stop)
    return {host: problem for host, problem in ended.items() if problem}


def _do(progress: Progress, host: str, changes: Sequence[Change]) -> _Result:
    if progress.interrupted():
        return _Result(())
    tell, work = progress.listener, batch(changes)
    for change in changes:
        tell(_event("change-started", change))
    result = progress.fleet.do(
        host, work.ops, listener=tell, within_s=work.within_s, subject=changes[0].stage
    )
    error, index = result.error, result.failed_index
    if error and index is None:  # the host was lost, and nobody knows how far it came
        return _Result((), error)
    done = work.done(len(work.ops) if index is None else index)
    for change in done:
        tell(_event("change-done", change))
    if error is None or index is None:
        return _Result(done)
    failed = work.failed(index)
    for change in failed:
        tell(_event("change-failed", change, error))
    return _Result(done, _problem(host, failed, error))


def _event(kind: EventKind, change: Change, error: Problem | None = None) -> Event:
    data = {"action": change.action.name, "stage": change.stage, "after": change.after}
    text = f"{change.subject}: {error.what}" if error else change.subject
    return Event(kind, text, host=change.host, subject=change.step, data=data)


def _problem(host: str, failed: Sequence[Change], error: Problem) -> Problem:
    steps = ", ".join(dict.fromkeys(c.step for c in failed))
    subjects = ", ".join(dict.fromkeys(c.subject for c in failed))
    return replace(error, what=f"{subjects}: {error.what}", where=f"{host}, step {steps}")
