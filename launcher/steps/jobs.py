"""Jobs of a step: long work on a host, named by what it does, attached to where it already runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.plan import Action, Draft, Op
from launcher.steps import texts


@dataclass(frozen=True, slots=True)
class Job:
    """A program and its words. Equal words are the same job, whoever starts it."""

    prefix: str
    words: tuple[str, ...]
    within_s: int
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`venv-1a2b3c4d5e6f`; its unit is `dsv32-job-<name>`."""
        return f"{self.prefix}-{texts.digest(*self.words)[:12]}"

    @property
    def probe(self) -> Probe:
        """Asks how it stands."""
        return Probe("job", (self.name,))

    @property
    def op(self) -> Op:
        """Starts it, or attaches to it where it runs."""
        return Op(
            "job",
            {
                "name": self.name,
                "words": list(self.words),
                "environment": dict(self.environment),
                "within_s": self.within_s,
            },
        )


def draft(job: Job, facts: Facts, *, subject: str, before: str, after: str) -> Draft:
    """The one difference that a job removes; says so where the job already runs or failed last time."""
    because = _last_time(facts[job.probe])
    action = Action.CREATE if before == "absent" else Action.UPDATE
    if because == RUNNING:
        return Draft(Action.COMMAND, subject, because, after, (job.op,))
    return Draft(action, subject, before, after, (job.op,), because=because)


RUNNING = "job running, will attach"


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
