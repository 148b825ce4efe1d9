"""diagnose: what broke first, on which host, and what to do; asks hosts, or reads logs that were saved."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from packaging.specifiers import SpecifierSet

from launcher.flows.hang import Hang, hangs, stalled
from launcher.flows.logs import COLOURS
from launcher.flows.runbook import command_for
from launcher.flows.status import DEAD, Status, status
from launcher.flows.targets import ROUTING, Unit, units_of
from launcher.health.diagnose import Cause, Diagnosis, confirmation, confirmed, diagnose
from launcher.health.errors import Line, last_start, systemd_pid
from launcher.health.hands import Hands, look_within_s
from launcher.health.matches import version_told
from launcher.health.state import ProcessState
from launcher.health.stuck import find_stuck
from launcher.load.data import Data, roots_of
from launcher.load.engines import read_engines
from launcher.load.logs import lines_of, read_logs
from launcher.load.runbooks import read_runbooks
from launcher.load.signatures import read_log_knowledge
from launcher.model.deployment import Deployment
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.history import release
from launcher.model.problem import Problem
from launcher.model.profile import Engine
from launcher.model.runbook import Runbook
from launcher.model.signature import LogLine
from launcher.model.wish import Wanted

# what is read of one unit; a start writes a few hundred lines, a traceback of sixteen ranks a few thousand
LINES_AT_MOST = 20_000
# what a GPU or a NIC did to an instance may have come an hour before it was noticed
KERNEL_BEFORE_S = 3600.0
KERNEL_LINES = 400
KERNEL_LOG = ("journalctl", "-o", "json", "--no-pager", "-q")
KERNEL_FIELDS = (
    "--output-fields=MESSAGE,_TRANSPORT,_SYSTEMD_UNIT,UNIT",
    "_TRANSPORT=kernel",
    "+",
    "UNIT=nvidia-fabricmanager.service",
    "+",
    "_SYSTEMD_UNIT=nvidia-fabricmanager.service",
)
CONFIRMED_AT_MOST = 5
CONFIRM_WITHIN_S = 15
NO_SUCH_PROGRAM = 127


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a look brought."""

    diagnosis: Diagnosis
    lines: int
    problems: tuple[Problem, ...] = ()
    """Hosts that did not answer, and processes that are down and do not say why."""
    hangs: tuple[Hang, ...] = ()
    last_start: bool = False
    """Nothing older than each unit's last start was looked at."""
    runbooks: Mapping[str, Runbook] = field(default_factory=dict)
    """Id of a signature → its runbook."""

    @property
    def found(self) -> bool:
        """Is anything wrong?"""
        return bool(self.problems or self.hangs or self.diagnosis.causes)

    def runbook(self, cause: Cause) -> str:
        """The command that runs the cause's runbook; empty where there is none."""
        book = self.runbooks.get(cause.signature.id) if cause.signature else None
        line = cause.first.line
        instance = line.instance if line.instance not in ROUTING else ""
        return command_for(book, instance=instance, host=line.host) if book else ""


def runbooks_by_signature(data: Data) -> Mapping[str, Runbook]:
    """Id of a signature → the runbook that is for it."""
    return {name: book for book in read_runbooks(data).values() for name in book.signatures}


def of_files(paths: Sequence[Path], *, version: str, data_dir: Path | None) -> Report:
    """The diagnosis of saved logs."""
    data = Data(roots_of(data_dir))
    knowledge = read_log_knowledge(data)
    lines = read_logs(paths, year=datetime.now(timezone.utc).year)
    version = version or version_told(lines, knowledge.forms)
    engine = engine_of(version, read_engines(data))
    found = diagnose(lines, knowledge, engine, version=version)
    return Report(found, len(lines), runbooks=runbooks_by_signature(data))


def engine_of(version: str, engines: Mapping[str, Engine]) -> Engine:
    """What is known of that release; of the newest, if that is not known."""
    fitting = (e for e in engines.values() if version and version in SpecifierSet(e.versions))
    newest = max(engines.values(), key=lambda e: release(e.name.removeprefix("vllm-")))
    return next(fitting, newest)


def of_hosts(
    fleet: Hands,
    wanted: Wanted,
    deployment: Deployment,
    target: str,
    *,
    since_s: float,
    version: str,
    data_dir: Path | None,
) -> Report:
    """The diagnosis of a deployment as it is: `since_s` (epoch), or since each unit's last start if 0."""
    engine = wanted.wish.profile.engine
    assert engine, "what serves has an engine"
    data = Data(roots_of(data_dir))
    knowledge = read_log_knowledge(data)
    units = units_of(deployment, target)
    now = status(fleet, wanted, deployment)
    own = {(u.host, u.name) for u in units}
    processes = tuple(p for p in now.processes if (p.host, p.unit) in own)
    logs, silent = journals(fleet, units, since_s)
    lines = [line for log in logs.values() for line in log]
    lines += kernels(fleet, units, kernel_since_s(lines, since_s))
    version = version or wanted.wish.profile.stack.engine_version or version_told(lines, knowledge.forms)
    found = diagnose(lines, knowledge, engine, version=version)
    found = replace(found, causes=ask_to_confirm(fleet, found.causes, wanted.wish.inventory.hosts))
    told = {key: [Line(x.time_s, x.text) for x in log] for key, log in logs.items()}
    now_s = time.time()
    waiting = (
        *find_stuck(deployment, processes, told, engine, now_s),
        *stalled(deployment, processes, found, now_s),
    )
    return Report(
        found,
        len(lines),
        (*silent, *unexplained(down(now, own), found)),
        hangs(fleet, deployment, processes, waiting),
        last_start=not since_s,
        runbooks=runbooks_by_signature(data) if found.causes else {},
    )


def journals(
    fleet: Hands, units: Iterable[Unit], since_s: float
) -> tuple[Mapping[tuple[str, str], tuple[LogLine, ...]], tuple[Problem, ...]]:
    """The lines of each unit, one request a host; and the hosts that did not answer."""
    units = tuple(units)
    probes = {u: Probe("journal", (u.name, "", LINES_AT_MOST, "")) for u in units}
    asked: dict[str, tuple[Probe, ...]] = {}
    for unit, probe in probes.items():
        asked[unit.host] = (*asked.get(unit.host, ()), probe)
    answers = fleet.ask(asked, within_s=look_within_s)
    logs: dict[tuple[str, str], tuple[LogLine, ...]] = {}
    for unit, probe in probes.items():
        answer = answers[unit.host]
        journal = answer[probe] if isinstance(answer, Facts) else None
        if journal is None or isinstance(journal, Unknown):
            continue
        entries = journal["entries"]
        kept = [e for e in entries if e["time"] >= since_s] if since_s else last_start(entries)
        name = unit.name.removesuffix(".service")
        logs[unit.host, unit.name] = tuple(
            LogLine(unit.host, name, e["time"], COLOURS.sub("", e["message"]), unit.owner)
            for e in kept
            if e["pid"] == systemd_pid or e["message"].strip()
        )
    silent = tuple(a for a in answers.values() if isinstance(a, Problem))
    return logs if since_s else with_engines(logs, units), silent


def with_engines(
    logs: Mapping[tuple[str, str], tuple[LogLine, ...]], units: Iterable[Unit]
) -> Mapping[tuple[str, str], tuple[LogLine, ...]]:
    """The logs of this life: those of guards since the last start of what they guard, of routers and fronts
    since the last start of any engine. They outlive many, and tell of each death.
    """
    began_s = {
        (u.host, u.owner): log[0].time_s
        for u in units
        if not u.guards and u.owner not in ROUTING and (log := logs.get((u.host, u.name)))
    }
    first_s = {(u.host, u.name): began_s.get((u.host, u.owner), 0.0) for u in units if u.guards}
    latest_s = max(began_s.values(), default=0.0)
    first_s |= {(u.host, u.name): latest_s for u in units if u.owner in ROUTING}
    return {
        key: tuple(line for line in log if line.time_s >= first_s.get(key, 0.0)) for key, log in logs.items()
    }


def kernel_since_s(lines: Iterable[LogLine], since_s: float) -> float:
    """From when on the hosts' own words may matter."""
    first_s = min((line.time_s for line in lines), default=time.time())
    return (since_s or first_s) - KERNEL_BEFORE_S


def kernels(fleet: Hands, units: Iterable[Unit], since_s: float) -> list[LogLine]:
    """What the kernels of the units' hosts, and their fabric managers, have said."""
    words = (*KERNEL_LOG, "-n", str(KERNEL_LINES), "-S", f"@{since_s:.0f}", *KERNEL_FIELDS)
    probe = Probe("command", (words, CONFIRM_WITHIN_S))
    answers = fleet.ask({u.host: (probe,) for u in units}, within_s=look_within_s)
    found: list[LogLine] = []
    for host, answer in answers.items():
        if isinstance(answer, Facts) and not isinstance(answer[probe], Unknown):
            text = str(answer[probe]["stdout"])
            told = lines_of(text, host=host, unit="kernel", year=1970)
            found += (replace(line, host=host) for line in told)  # the host's own name for itself may differ
    return found


def ask_to_confirm(fleet: Hands, causes: Sequence[Cause], hosts: Iterable[str]) -> tuple[Cause, ...]:
    """The first few causes, after their hosts were asked: one request a host."""
    known = frozenset(hosts)
    asked: dict[str, tuple[Probe, ...]] = {}
    probes: dict[int, Probe] = {}
    for n, cause in enumerate(causes[:CONFIRMED_AT_MOST]):
        question, host = confirmation(cause), cause.first.line.host
        if question and host in known:
            probes[n] = Probe("command", (question[0], CONFIRM_WITHIN_S))
            asked[host] = (*asked.get(host, ()), probes[n])
    answers = fleet.ask(asked, within_s=look_within_s) if asked else {}
    return tuple(
        with_answer(c, answers.get(c.first.line.host), probes[n]) if n in probes else c
        for n, c in enumerate(causes)
    )


def with_answer(cause: Cause, answer: Facts | Problem | None, probe: Probe) -> Cause:
    """The cause as its host's answer leaves it; a command that the host does not have says nothing."""
    told = answer[probe] if isinstance(answer, Facts) else None
    question = confirmation(cause)
    if told is None or isinstance(told, Unknown) or told["exit"] in (None, NO_SUCH_PROGRAM) or not question:
        return cause
    return confirmed(cause, found=bool(question[1].search(told["stdout"] + told["stderr"])))


@dataclass(frozen=True, slots=True)
class Down:
    """A unit that does not run."""

    owner: str
    host: str
    unit: str
    active: str
    why: str
    """The first error of its log, or what it waits for; empty where nothing is said."""


def down(now: Status, own: Collection[tuple[str, str]]) -> tuple[Down, ...]:
    """Of these hosts' units, those that do not run: processes, routers, fronts."""
    units = (
        *(Down(p.instance, p.host, p.unit, p.active, p.note or waits(p)) for p in now.processes),
        *(Down("router", r.host, r.unit, r.active, r.note) for r in now.routers),
        *(Down("front", f.host, f.unit, f.active, "") for f in now.fronts),
    )
    engines = {(p.host, p.unit) for p in now.processes}
    # an engine is long on its way; what else is not up is started again and again
    bad = {True: (*DEAD, "unknown"), False: (*DEAD, "unknown", "activating")}
    return tuple(u for u in units if (u.host, u.unit) in own and u.active in bad[(u.host, u.unit) in engines])


def unexplained(units: Iterable[Down], found: Diagnosis) -> tuple[Problem, ...]:
    """Those that are down, where no line of what they belong to says why."""
    told = {match.line.instance for cause in found.causes for match in cause.evidence}
    told |= {effect.match.line.instance for cause in found.causes for effect in cause.effects}
    return tuple(
        Problem(
            f"{u.owner} on {u.host} is {u.active}, and no line of its log is known to say why",
            where=f"{u.host}, unit {u.unit}",
            why=u.why or "its log since its last start is empty",
            do=f"dsv32-launch logs {u.owner}",
        )
        for u in units
        if u.owner not in told
    )


def waits(process: ProcessState) -> str:
    """What the guard of a process says that it waits for; empty where it says nothing."""
    return f"its guard waits for {process.guard.waits}" if process.guard and process.guard.waits else ""
