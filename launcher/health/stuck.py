"""Stuck: of instances that do not answer though nothing of them died, the process that all wait for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from launcher.health.errors import Line
from launcher.health.phases import Progress, advance, behind, budget_s
from launcher.health.state import ProcessState
from launcher.model.deployment import Deployment, Instance, Process
from launcher.model.profile import Engine


@dataclass(frozen=True, slots=True)
class Stuck:
    """One process that is not ready."""

    process: Process
    phase: str
    for_s: float
    """How long it has been in that phase."""
    budget_s: int
    late: bool
    """Some process of the instance is beyond its budget: it is no longer just starting."""
    last: str
    """Its last log line."""


def find_stuck(
    deployment: Deployment,
    states: Iterable[ProcessState],
    logs: Mapping[tuple[str, str], Sequence[Line]],
    engine: Engine,
    now_s: float,
) -> tuple[Stuck, ...]:
    """One of each instance that is not ready, though all its processes run. `logs`: by host and unit."""
    by_process = {(s.host, s.unit): s for s in states}
    found = (stuck_of(i, by_process, logs, engine, now_s) for i in deployment.instances)
    return tuple(s for s in found if s)


def stuck_of(
    instance: Instance,
    states: Mapping[tuple[str, str], ProcessState],
    logs: Mapping[tuple[str, str], Sequence[Line]],
    engine: Engine,
    now_s: float,
) -> Stuck | None:
    """The process that the others of an instance wait for; None if it answers, or something of it is down."""
    own = [states[p.host, p.unit] for p in instance.processes if (p.host, p.unit) in states]
    if len(own) < len(instance.processes) or any(s.active not in ("active", "activating") for s in own):
        return None
    if all(s.healthy is not False for s in own):
        return None
    members = [
        progress_of(p, states[p.host, p.unit], logs.get((p.host, p.unit), ()), engine)
        for p in instance.processes
    ]
    late = behind(members, engine.phases, now_s)
    slowest = late or min((m for m in members if not m.ready), key=lambda m: (m.phase, m.since_s))
    phase = engine.phases[slowest.phase]
    budget = budget_s(slowest, engine.phases)
    return Stuck(slowest.process, phase.name, now_s - slowest.since_s, budget, late is not None, slowest.last)


def progress_of(process: Process, state: ProcessState, lines: Iterable[Line], engine: Engine) -> Progress:
    """How far its log says that it has come, by the times of the lines."""
    progress = Progress(process, 0, state.since_s, ready=state.healthy is True)
    for line in lines:
        progress = advance(progress, (line,), engine.phases, line.time_s)
    return progress
