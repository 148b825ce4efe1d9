"""Jobs of a step: what a plan says of one, by how it stands on the host."""

from __future__ import annotations

from typing import Any

from launcher.model.facts import Facts, Unknown
from launcher.model.job import Job
from launcher.model.plan import Action, Draft

RUNNING = "job running, will attach"


VOLATILE = {"job": frozenset({"progress", "tail"})}
"""Probe → parts of its answer that move by themselves."""


def draft(job: Job, facts: Facts, *, subject: str, before: str, after: str) -> Draft:
    """The one difference that a job removes; says so where the job already runs or failed last time."""
    because = _last_time(facts[job.probe])
    action = Action.CREATE if before == "absent" else Action.UPDATE
    if because == RUNNING:
        return Draft(Action.COMMAND, subject, because, after, (job.op,))
    return Draft(action, subject, before, after, (job.op,), because=because)


def _last_time(have: Any) -> str:
    if isinstance(have, Unknown):
        return str(have)
    match have["state"]:
        case "running":
            return RUNNING
        case "failed":
            tail = have["tail"]
            return f"last time the job failed: {tail[-1]}" if tail else "last time the job failed"
        case _:
            return ""
