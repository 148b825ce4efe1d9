"""One meeting of a load check, as jobs on its hosts: they survive their controller, and are found again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.checks.figures import Told
from launcher.checks.meetings import FOLDER
from launcher.execute.hands import Hands
from launcher.flows import load_job as program
from launcher.health.hands import answers_of
from launcher.model.facts import Probe, Unknown
from launcher.model.load_check import Meeting
from launcher.model.plan import Op
from launcher.model.problem import LauncherError, Problem
from launcher.model.run import Event, Listener

BYTES = 32 << 20
GRACE_S = 60
PICKED_UP_WITHIN_S = 3600
"""An older result tells nothing of the hosts as they are now."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What all meetings of one check have in common."""

    programs: Mapping[str, bytes]
    listener: Listener


def measured(fleet: Hands, meeting: Meeting, brought: Brought) -> tuple[tuple[Told, ...], ...] | Problem:
    """What each host told of each leg: measured now, or picked up where it ended and nobody took it."""
    try:
        states = _states(fleet, meeting)
        if any(state != "done" for state in states.values()):
            _run(fleet, meeting, brought, states)
        told = tuple(_collected(fleet, meeting, host) for host in meeting.hosts)
        _let_go(fleet, meeting, brought)
    except LauncherError as error:
        return error.problems[0]
    return told


def _states(fleet: Hands, meeting: Meeting) -> dict[str, str]:
    """Host → absent, running, done, failed, or old."""
    unit = f"dsv32-job-{meeting.name}.service"
    job, shown, clock = Probe("job", (meeting.name,)), Probe("unit", (unit,)), Probe("host")
    found: dict[str, str] = {}
    for host, facts in answers_of(fleet, dict.fromkeys(meeting.hosts, (job, shown, clock))).items():
        answers = facts[job], facts[shown], facts[clock]
        state = "absent" if any(isinstance(a, Unknown) for a in answers) else str(facts[job]["state"])
        if state == "done" and facts[clock]["time"] - facts[shown]["since"] > PICKED_UP_WITHIN_S:
            state = "old"
        found[host] = state
    return found


def _run(fleet: Hands, meeting: Meeting, brought: Brought, states: Mapping[str, str]) -> None:
    """Begin it on all its hosts. Where it still runs on one, wait for that, and begin it where it is not: one
    that has ended there is not begun anew, for its peers would not be there."""
    running = "running" in states.values()
    begin = [host for host, state in states.items() if state != "done" or not running]
    said = "attached to a run that was begun before" if running else "measuring"
    brought.listener(Event("phase", said, subject=_subject(meeting)))

    def work(host: str) -> None:
        _do(fleet, meeting, brought, host, (*files_of(meeting, brought, host), job_of(meeting, host)))

    _each(fleet.map(begin, work))


def files_of(meeting: Meeting, brought: Brought, host: str) -> Iterator[Op]:
    """What the job needs on one host: our program, what it is to do, and the programs of the check."""
    folder, place = f"{FOLDER}/{meeting.name}", meeting.hosts.index(host)
    legs = [
        {
            "name": " – ".join(map(str, leg.ends)),
            "words": leg.words[place],
            "again": leg.listener is not None and leg.listener != place,
        }
        for leg in meeting.legs
    ]
    spec = {"within_s": meeting.check.within_s, "legs": legs}
    yield Op("put", {"path": f"{folder}/load_job.py"}, Path(program.__file__).read_bytes())
    yield Op("put", {"path": f"{folder}/spec.json"}, json.dumps(spec, indent=1).encode())
    for name, content in brought.programs.items():
        yield Op("put", {"path": f"{FOLDER}/programs/{name}", "mode": "0755"}, content)


def job_of(meeting: Meeting, host: str) -> Op:
    """The job of a meeting on one of its hosts; its name is the same on each."""
    folder = f"{FOLDER}/{meeting.name}"
    line = ["python3", f"{folder}/load_job.py", folder]
    environment = dict(meeting.environments[meeting.hosts.index(host)])
    told = {"name": meeting.name, "words": line, "environment": environment}
    return Op("job", {**told, "within_s": job_within_s(meeting)})


def job_within_s(meeting: Meeting) -> int:
    """All legs, should each take all its time."""
    return meeting.check.within_s * len(meeting.legs) + GRACE_S


def _collected(fleet: Hands, meeting: Meeting, host: str) -> tuple[Told, ...]:
    folder = f"{FOLDER}/{meeting.name}"
    probe = Probe("read", (f"{folder}/told.json", BYTES))
    answer = answers_of(fleet, {host: (probe,)})[host][probe]
    text = "" if isinstance(answer, Unknown) else answer.get("text", "")
    try:
        return tuple(Told(leg["exit"], leg["text"]) for leg in json.loads(text))
    except ValueError:
        do = f"its words: ssh {host} journalctl -u dsv32-job-{meeting.name}"
        what = f"{meeting.check.id} ended and left no result"
        raise LauncherError(Problem(what, f"{host}, {folder}", do=do)) from None


def _let_go(fleet: Hands, meeting: Meeting, brought: Brought) -> None:
    # a job whose unit is there has a result that nobody has taken yet
    stop = Op("units", {"stop": [f"dsv32-job-{meeting.name}.service"]})
    remove = Op("remove", {"path": f"{FOLDER}/{meeting.name}"})
    _each(fleet.map(meeting.hosts, lambda host: _do(fleet, meeting, brought, host, (stop, remove))))


def _do(fleet: Hands, meeting: Meeting, brought: Brought, host: str, ops: tuple[Op, ...]) -> None:
    within_s = job_within_s(meeting) + GRACE_S
    done = fleet.do(host, ops, listener=brought.listener, within_s=within_s, subject=_subject(meeting))
    if done.error:
        raise LauncherError(done.error)


def _each(answers: Mapping[str, Problem | None]) -> None:
    for answer in answers.values():
        if isinstance(answer, Problem):
            raise LauncherError(answer)


def _subject(meeting: Meeting) -> str:
    return f"{meeting.check.id}: {', '.join(meeting.hosts)}"
