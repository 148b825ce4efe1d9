"""Job: long work on a host in a systemd unit of its own, which goes on when its controller is gone.

Equal work has an equal name, whoever asks for it: the next one who does attaches to the job where it runs, or
takes its result. The unit of a job that has ended stays until somebody discards it; while it is there, nobody
has taken the result. The program tells how far it is in the file that $DSV32_PROGRESS names, written whole:
{"text": words for people, "done": so much, "total": of so much}.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.plan import Op

FOLDER = "/var/lib/dsv32/jobs"
"""On a host: a folder for each job that has files."""
State: TypeAlias = Literal["absent", "running", "done", "failed", "old"]
"""old: done so long ago that its result tells nothing any more."""


def name_of(prefix: str, work: Any) -> str:
    """`venv-1a2b3c4d5e6f`: `work` is all that makes it another job, as JSON has it."""
    return f"{prefix}-{hashlib.sha256(json.dumps(work, sort_keys=True).encode()).hexdigest()[:12]}"


def unit_of(name: str) -> str:
    """The unit of the job of that name."""
    return f"dsv32-job-{name}.service"


def folder_of(name: str) -> str:
    """Where the job of that name has its files."""
    return f"{FOLDER}/{name}"


@dataclass(frozen=True, slots=True)
class Job:
    """A program and what it needs."""

    name: str
    words: tuple[str, ...]
    within_s: int
    """Its unit ends it then."""
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Path → content, put on the host before it starts."""
    fresh_s: float = 0.0
    """An older result is not taken; the work is done anew."""

    @property
    def unit(self) -> str:
        """What it runs in."""
        return unit_of(self.name)

    @property
    def folder(self) -> str:
        """For what it reads and leaves."""
        return folder_of(self.name)

    @property
    def probe(self) -> Probe:
        """Asks whether it runs, how far it is, and what it said last where it failed."""
        return Probe("job", (self.name,))

    @property
    def op(self) -> Op:
        """Starts it, or attaches to it where it runs; done when it has ended well."""
        return Op(
            "job",
            {
                "name": self.name,
                "words": list(self.words),
                "environment": dict(self.environment),
                "within_s": self.within_s,
            },
        )

    def begun_from(self, state: State) -> tuple[Op, ...]:
        """What brings it from this state to its end. One that runs keeps the files that it began with."""
        put = (Op("put", {"path": path}, content) for path, content in self.files.items())
        return (self.op,) if state == "running" else (*put, self.op)

    @property
    def discarded(self) -> tuple[Op, ...]:
        """What forgets its result. The unit goes first: what has a unit has a result."""
        return (Op("units", {"stop": [self.unit]}), Op("remove", {"path": self.folder}))

    @property
    def questions(self) -> tuple[Probe, ...]:
        """What `state` is read from."""
        return (self.probe, Probe("unit", (self.unit,)), Probe("host"))

    def state(self, facts: Facts) -> State:
        """As a host answers its questions; absent where it cannot say."""
        told, unit, host = (facts[question] for question in self.questions)
        if any(isinstance(answer, Unknown) for answer in (told, unit, host)):
            return "absent"
        state: State = told["state"]
        return "old" if state == "done" and host["time"] - unit["since"] > self.fresh_s else state


def running_of(*prefixes: str) -> Probe:
    """Asks for the units of all jobs of these prefixes that run; `units_in` reads the answer."""
    patterns = tuple(f"dsv32-job-{prefix}-*" for prefix in prefixes)
    return Probe(
        "command", (("systemctl", "list-units", "--plain", "--no-legend", "--state=running", *patterns), 20)
    )


def units_in(answer: Any) -> tuple[str, ...]:
    """Units that `running_of` has found; none where that could not be asked."""
    lines = [] if isinstance(answer, Unknown) else answer["stdout"].splitlines()
    return tuple(line.split()[0] for line in lines if line.strip())
