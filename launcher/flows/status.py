"""status: pools, instances, ranks and endpoints as they are at this moment."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from launcher.health.errors import Line, first_error, last_start, systemd_pid, told_by_systemd
from launcher.health.hands import Hands, look_within_s
from launcher.health.live import Live, live
from launcher.health.state import (
    FrontState,
    ProcessState,
    RouterState,
    front_questions,
    front_state,
    process_questions,
    process_state,
    router_questions,
    router_state,
)
from launcher.model.deployment import Deployment, Drained
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.hold import HOLD, TIME, Hold, holds_in
from launcher.model.problem import Problem
from launcher.model.profile import Engine, RouterKind
from launcher.model.wish import Wanted

# the first error of a dead unit is seldom further from its end than this
lines_of_dead = 2000
DEAD = ("failed", "inactive")


@dataclass(frozen=True, slots=True)
class Status:
    """What is up and what is not, of everything that should serve."""

    cluster: str
    processes: tuple[ProcessState, ...]
    routers: tuple[RouterState, ...]
    fronts: tuple[FrontState, ...] = ()
    drained: tuple[Drained, ...] = ()
    holds: tuple[Hold, ...] = ()
    """Who keeps hosts from other people's runs."""
    looked_s: float = 0.0
    """When, on a clock of the controller that only goes forward."""
    live: tuple[Live, ...] = ()
    """What pools and instances do now; of one look alone there are no rates."""

    @property
    def serving(self) -> bool:
        """Everything is up."""
        routers = all(r.up for r in self.routers) and all(f.up for f in self.fronts)
        return routers and all(p.up for p in self.processes)


def status(fleet: Hands, wanted: Wanted, deployment: Deployment, *, before: Status | None = None) -> Status:
    """Look at every process and router: one request a host, and a second one where a unit died.

    `before`: an earlier look, since which tokens a second and times are counted.
    """
    profile = wanted.wish.profile
    assert profile.engine, "what serves has an engine"
    assert profile.router, "what serves has a router"
    answers = fleet.ask(questions(deployment, profile.engine, profile.router), within_s=look_within_s)
    looked_s = time.monotonic()
    processes = tuple(
        process_state(
            p, answered(answers[p.host], p.host, process_questions(p, profile.engine)), profile.engine
        )
        for i in deployment.instances
        for p in i.processes
    )
    routers = tuple(
        router_state(r, answered(answers[r.host], r.host, router_questions(r)), profile.router)
        for r in deployment.routers
    )
    fronts = tuple(
        front_state(f, answered(answers[f.host], f.host, front_questions(f, profile.router)), profile.router)
        for f in deployment.fronts
    )
    told = with_reasons(fleet, processes, profile.engine)
    now = time.strftime(TIME, time.gmtime())
    holds = holds_in(answers.values(), now)
    pools = {i.name: i.pool for i in deployment.instances}
    elapsed_s = looked_s - before.looked_s if before else 0.0
    numbers = live(before.processes if before else (), processes, pools=pools, elapsed_s=elapsed_s)
    return Status(
        deployment.cluster, told, routers, fronts, deployment.drained, holds, looked_s, tuple(numbers)
    )


def questions(deployment: Deployment, engine: Engine, router: RouterKind) -> Mapping[str, tuple[Probe, ...]]:
    """Host → everything it is asked, each question once."""
    asked: dict[str, dict[Probe, None]] = {}
    for instance in deployment.instances:
        for process in instance.processes:
            asked.setdefault(process.host, {}).update(dict.fromkeys(process_questions(process, engine)))
    for r in deployment.routers:
        asked.setdefault(r.host, {}).update(dict.fromkeys(router_questions(r)))
    for f in deployment.fronts:
        asked.setdefault(f.host, {}).update(dict.fromkeys(front_questions(f, router)))
    return {host: (*probes, HOLD) for host, probes in asked.items()}


def answered(answer: Facts | Problem, host: str, asked: tuple[Probe, ...]) -> Facts:
    """The facts; of a host that did not answer, each is unknown for that reason."""
    if isinstance(answer, Facts):
        return answer
    return Facts(host, dict.fromkeys(asked, Unknown(answer.what)))


def with_reasons(fleet: Hands, states: tuple[ProcessState, ...], engine: Engine) -> tuple[ProcessState, ...]:
    """Each dead process with the first error line of its log."""
    asked: dict[str, list[Probe]] = {}
    for state in states:
        if state.active in DEAD:
            asked.setdefault(state.host, []).append(journal_probe(state))
    if not asked:
        return states
    answers = fleet.ask(asked, within_s=look_within_s)
    return tuple(
        replace(s, note=reason(answers[s.host], journal_probe(s), engine)) if s.active in DEAD else s
        for s in states
    )


def journal_probe(state: ProcessState) -> Probe:
    """The end of the log of a process's last start."""
    return Probe("journal", (state.unit, state.invocation, lines_of_dead, ""))


def reason(answer: Facts | Problem, probe: Probe, engine: Engine) -> str:
    """The first error line of the last start, else how systemd saw it fail, else its last line.

    Empty if somebody stopped it.
    """
    journal = answer if isinstance(answer, Problem) else answer[probe]
    if isinstance(journal, Problem):
        return journal.what
    if isinstance(journal, Unknown):
        return journal.reason
    entries = last_start(journal["entries"])
    if any(told_by_systemd(e, "Stopping ") for e in entries):
        return ""
    lines = [Line(e["time"], e["message"]) for e in entries if e["pid"] != systemd_pid]
    error = first_error({probe.args[0]: lines}, engine)
    if error:
        return error.text
    told = (e["message"].partition(": ")[2] for e in entries if e["pid"] == systemd_pid)
    killed = next((text for text in told if text.startswith("Main process exited")), "")
    return killed or next((line.text.strip() for line in reversed(lines) if line.text.strip()), "")
