"""What hangs in silence: the process of an instance that the others wait for, and what it does meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from launcher.health.diagnose import Diagnosis
from launcher.health.hands import Hands, look_within_s
from launcher.health.state import ProcessState
from launcher.health.stuck import Stuck
from launcher.model.deployment import Deployment, Process
from launcher.model.facts import Facts, Probe, Unknown

SERVING = "serving"
"""The phase of a process that is ready."""
STALLED = "engine-stalled"
"""The signature of an engine that answers, has requests and makes no token."""
STATES_WITHIN_S = 15
STACKS_WITHIN_S = 60
# pid, state (T: a signal or a debugger stopped it; D: it waits in the kernel), where in the kernel, command
STATES = """
group=$(systemctl show -p ControlGroup --value "$1")
xargs -r ps -ww -o pid=,state=,wchan:40=,args= -p < "/sys/fs/cgroup$group/cgroup.procs"
"""
STATE = re.compile(r"\s*(?P<pid>\d+) (?P<state>\w) (?P<place>\S+)\s+(?P<name>\S+)")
# every process of a unit; py-spy stops each for a moment only (--nonblocking: not even that)
STACKS = """
spy=$2; [ -x "$spy" ] || spy=$(command -v py-spy) || exit 127
group=$(systemctl show -p ControlGroup --value "$1")
for pid in $(head -n 24 "/sys/fs/cgroup$group/cgroup.procs"); do
    timeout 10 "$spy" dump --nonblocking --pid "$pid" || true
done 2>&1 | head -c 60000
"""


@dataclass(frozen=True, slots=True)
class Stacks:
    """What py-spy showed of a process, or how to get it."""

    text: str
    how: str = ""


@dataclass(frozen=True, slots=True)
class Halt:
    """A process that cannot go on."""

    words: str
    by_signal: bool
    """Until somebody lets it go on; else it waits in the kernel, which may be a matter of a moment."""


@dataclass(frozen=True, slots=True)
class Hang:
    """A process that others wait for."""

    stuck: Stuck
    halted: str = ""
    """A process of its unit that cannot go on, in words; empty where all can run."""
    stacks: Stacks | None = None
    """None where it may still be on its way."""


def stalled(
    deployment: Deployment, states: Iterable[ProcessState], found: Diagnosis, now_s: float
) -> tuple[Stuck, ...]:
    """Of each instance that answers and makes no token, the process whose log said so first."""
    up = {s.instance for s in states if s.healthy}
    matches = [m for cause in found.causes for m in (*cause.evidence, *(e.match for e in cause.effects))]
    firsts = {m.line.instance: m for m in reversed(matches) if m.key == STALLED and m.line.instance in up}
    return tuple(
        Stuck(process, SERVING, now_s - m.line.time_s, 0, True, m.text)
        for name, m in firsts.items()
        for process in deployment.instance(name).processes
        if process.host == m.line.host
    )


def hangs(
    fleet: Hands, deployment: Deployment, states: Iterable[ProcessState], waiting: Iterable[Stuck]
) -> tuple[Hang, ...]:
    """Each instance that waits, with what its hosts say of its processes.

    One that a signal has stopped is it, whatever the logs say; vLLM answers /health all the while.
    """
    halts = halted(fleet, states)
    named = {stuck.process.instance: stuck for stuck in waiting}
    for (name, host), halt in halts.items():
        if halt.by_signal and name not in named:
            named[name] = Stuck(process_on(deployment, name, host), SERVING, 0, 0, True, "")
    return tuple(hang(fleet, deployment, stuck, halts) for stuck in named.values())


def process_on(deployment: Deployment, instance: str, host: str) -> Process:
    """The process of an instance on one of its hosts."""
    return next(p for p in deployment.instance(instance).processes if p.host == host)


def hang(fleet: Hands, deployment: Deployment, stuck: Stuck, halts: Mapping[tuple[str, str], Halt]) -> Hang:
    """One of them; of several halts on its hosts that of a signal."""
    name, host = stuck.process.instance, stuck.process.host
    own = {h: halt for (n, h), halt in halts.items() if n == name}
    found = sorted(own, key=lambda h: (not own[h].by_signal, h != host))
    process = process_on(deployment, name, found[0] if found else host)
    if process is not stuck.process:
        stuck = replace(stuck, process=process, last="")
    taken = stacks(fleet, process, deployment) if stuck.late or found else None
    return Hang(stuck, own[found[0]].words if found else "", taken)


def halted(fleet: Hands, states: Iterable[ProcessState]) -> Mapping[tuple[str, str], Halt]:
    """Instance and host → its process that cannot go on: one request a host."""
    probes = {
        (s.instance, s.host): Probe("command", (("sh", "-c", STATES, "sh", s.unit), STATES_WITHIN_S))
        for s in states
        if s.active in ("active", "activating")
    }
    asked: dict[str, tuple[Probe, ...]] = {}
    for (_, host), probe in probes.items():
        asked[host] = (*asked.get(host, ()), probe)
    answers = fleet.ask(asked, within_s=look_within_s) if asked else {}
    found: dict[tuple[str, str], Halt] = {}
    for key, probe in probes.items():
        answer = answers[key[1]]
        told = answer[probe] if isinstance(answer, Facts) else None
        if told and not isinstance(told, Unknown) and (halt := halt_in(str(told["stdout"]))):
            found[key] = halt
    return found


def halt_in(text: str) -> Halt | None:
    """The process that cannot go on, of what ps says."""
    rows = [row for line in text.splitlines() if (row := STATE.match(line))]
    for row in rows:
        if row["state"] in ("T", "t"):
            who = f"process {row['pid']} ({row['name']})"
            return Halt(f"{who} was stopped by a signal: kill -CONT {row['pid']} lets it go on", True)
    for row in rows:
        if row["state"] == "D":
            where = f"process {row['pid']} ({row['name']}) waits in the kernel: {row['place']}"
            return Halt(where, False)
    return None


def stacks(fleet: Hands, process: Process, deployment: Deployment) -> Stacks:
    """What each Python process of a unit does at this moment, if there is py-spy."""
    host, unit = process.host, process.unit
    spy = f"{deployment.environment_path}/bin/py-spy"
    probe = Probe("command", (("sh", "-c", STACKS, "sh", unit, spy), STACKS_WITHIN_S))
    answer = fleet.ask({host: (probe,)}, within_s=look_within_s + STACKS_WITHIN_S)[host]
    told = answer[probe] if isinstance(answer, Facts) else None
    if told and not isinstance(told, Unknown) and told["exit"] == 0 and told["stdout"].strip():
        return Stacks(told["stdout"])
    dump = f"py-spy dump --pid $(systemctl show -p MainPID --value {unit})"
    return Stacks("", f"there is no {spy} and no py-spy in PATH on {host}; put one there, then: {dump}")
