"""What hangs in silence: the process of an instance that the others wait for, and what it does meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from launcher.health.diagnose import Diagnosis
from launcher.health.hands import Hands, look_within_s
from launcher.health.state import ProcessState
from launcher.health.stuck import Stuck
from launcher.model.deployment import Deployment, Instance, Process
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


def hangs(fleet: Hands, deployment: Deployment, waiting: Iterable[Stuck]) -> tuple[Hang, ...]:
    """Each with what its hosts say of its processes. One that is halted is it, whatever the logs say."""
    return tuple(hang(fleet, deployment, stuck) for stuck in waiting)


def hang(fleet: Hands, deployment: Deployment, stuck: Stuck) -> Hang:
    """One of them."""
    instance = deployment.instance(stuck.process.instance)
    halts = halted(fleet, instance)
    host = next(iter(halts), stuck.process.host)
    process = next(p for p in instance.processes if p.host == host)
    if process is not stuck.process:
        stuck = replace(stuck, process=process, last="")
    taken = stacks(fleet, process, deployment) if stuck.late or halts else None
    return Hang(stuck, halts.get(host, ""), taken)


def halted(fleet: Hands, instance: Instance) -> Mapping[str, str]:
    """Host → its process that a signal has stopped, or that waits in the kernel: one request a host."""
    probes = {
        p.host: Probe("command", (("sh", "-c", STATES, "sh", p.unit), STATES_WITHIN_S))
        for p in instance.processes
    }
    answers = fleet.ask({h: (p,) for h, p in probes.items()}, within_s=look_within_s)
    told = {h: a[probes[h]] for h, a in answers.items() if isinstance(a, Facts)}
    found = {h: halt_in(str(t["stdout"])) for h, t in told.items() if not isinstance(t, Unknown)}
    return {host: words for host, words in found.items() if words}


def halt_in(text: str) -> str:
    """The process that cannot go on, of what ps says; a signal's first, for that is no matter of a moment."""
    rows: Sequence[re.Match[str]] = [row for line in text.splitlines() if (row := STATE.match(line))]
    for row in rows:
        who = f"process {row['pid']} ({row['name']})"
        if row["state"] in ("T", "t"):
            return f"{who} was stopped by a signal: kill -CONT {row['pid']} lets it go on"
    waiting = (r for r in rows if r["state"] == "D")
    return next((f"process {r['pid']} ({r['name']}) waits in the kernel: {r['place']}" for r in waiting), "")


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
