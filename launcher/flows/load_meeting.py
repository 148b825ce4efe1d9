"""One meeting of a load check: the same job on each of its hosts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from launcher.checks.figures import Told
from launcher.checks.meetings import PROGRAMS
from launcher.execute.hands import Hands
from launcher.execute.jobs import GRACE_S, SAID, RemoteJob
from launcher.flows import load_job as program
from launcher.model.job import Job, State, folder_of
from launcher.model.load_check import Meeting
from launcher.model.problem import LauncherError, Problem
from launcher.model.run import Event, Listener

T = TypeVar("T")
FRESH_S = 3600.0
"""An older result tells nothing of the hosts as they are now."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What all meetings of one check have in common."""

    programs: Mapping[str, bytes]
    listener: Listener


def measured(fleet: Hands, meeting: Meeting, brought: Brought) -> tuple[tuple[Told, ...], ...] | Problem:
    """What each host told of each leg: measured now, or picked up where it ended and nobody took it."""
    subject = f"{meeting.check.id}: {', '.join(meeting.hosts)}"
    jobs = {
        host: RemoteJob(fleet, host, job_of(meeting, brought, host), brought.listener, subject)
        for host in meeting.hosts
    }
    try:
        _bring_to_an_end(fleet, jobs, brought, subject)
        told = tuple(_told(*jobs[host].collect("told.json")) for host in meeting.hosts)
        _of_each(fleet.map(jobs, lambda host: jobs[host].discard()))
    except LauncherError as error:
        return error.problems[0]
    return told


def _bring_to_an_end(fleet: Hands, jobs: Mapping[str, RemoteJob], brought: Brought, subject: str) -> None:
    """Begin it on all its hosts. Where it still runs on one, wait for that, and begin it where it is not: one
    that has ended there is not begun anew, for its peers would not be there."""
    states: dict[str, State] = _of_each(fleet.map(jobs, lambda host: jobs[host].state()))
    if all(state == "done" for state in states.values()):
        return
    running = "running" in states.values()
    brought.listener(Event("phase", SAID["running"] if running else "measuring", subject=subject))
    begin = [host for host, state in states.items() if state != "done" or not running]
    _of_each(fleet.map(begin, lambda host: jobs[host].begin(states[host])))


def job_of(meeting: Meeting, brought: Brought, host: str) -> Job:
    """The job of a meeting on one of its hosts: our program, what it is to do, and the check's programs."""
    folder, place = folder_of(meeting.name), meeting.hosts.index(host)
    legs = [
        {
            "name": " – ".join(map(str, leg.ends)),
            "words": leg.words[place],
            "again": leg.listener is not None and leg.listener != place,
        }
        for leg in meeting.legs
    ]
    spec = {"within_s": meeting.check.within_s, "legs": legs}
    return Job(
        meeting.name,
        ("python3", f"{folder}/load_job.py", folder),
        # all legs, should each take all its time
        within_s=meeting.check.within_s * len(legs) + int(GRACE_S),
        environment=meeting.environments[place],
        files={
            f"{folder}/load_job.py": Path(program.__file__).read_bytes(),
            f"{folder}/spec.json": json.dumps(spec, indent=1).encode(),
            **{f"{PROGRAMS}/{name}": content for name, content in brought.programs.items()},
        },
        fresh_s=FRESH_S,
    )


def _told(text: str) -> tuple[Told, ...]:
    return tuple(Told(leg["exit"], leg["text"]) for leg in json.loads(text))


def _of_each(answers: Mapping[str, T | Problem]) -> dict[str, T]:
    """All answers. LauncherError where one is a Problem."""
    found: dict[str, T] = {}
    for host, answer in answers.items():
        if isinstance(answer, Problem):
            raise LauncherError(answer)
        found[host] = answer
    return found
