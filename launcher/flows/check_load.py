"""check --load: what hosts can do under load, check after check, round after round, and whose fault it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from launcher.bench import workload
from launcher.checks import meetings
from launcher.checks.blame import findings_of
from launcher.checks.figures import Told, figures_of
from launcher.checks.meetings import Planned, hosts_of, meetings_of
from launcher.execute.hands import Hands
from launcher.flows.load_meeting import Brought, measured
from launcher.health.hands import answers_of
from launcher.load.data import Data, roots_of
from launcher.load.load_checks import read_load_checks, read_programs
from launcher.load.schema import near
from launcher.model.facts import Probe
from launcher.model.job import running_of, unit_of, units_in
from launcher.model.load_check import End, Figure, LoadCheck, LoadFinding, Meeting
from launcher.model.problem import Exit, InputError, LauncherError, LockedError, Problem
from launcher.model.run import Event, Listener
from launcher.model.wish import Wanted

ACTIVE = ("active", "activating", "deactivating", "reloading")
RUNNING = running_of(meetings.JOBS, workload.JOBS)
"""Loads and benchmarks on a host."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One check, all that it measured, and what is wrong."""

    check: LoadCheck
    figures: tuple[Figure, ...]
    findings: tuple[LoadFinding, ...]

    @property
    def usual(self) -> float | None:
        """The median; None where nothing was measured."""
        values = [f.value for f in self.figures if f.value is not None]
        return median(values) if values else None


def load_checks(names: Sequence[str], *, data_dir: Path | None = None) -> tuple[LoadCheck, ...]:
    """Those of these ids and topics; without a name all but the slow ones. InputError for a name that is
    neither."""
    known = every(data_dir=data_dir)
    words = {word for check in known for word in (check.id, check.topic)}
    for name in names:
        if name not in words:
            what = f"no load check and no topic of them is called `{name}`"
            raise InputError(Problem(what, "--only", do=near(name, sorted(words))))
    return tuple(c for c in known if c.id in names or c.topic in names or not (names or c.slow))


def every(*, data_dir: Path | None = None) -> tuple[LoadCheck, ...]:
    """All there are, slow ones, too."""
    return read_load_checks(Data(roots_of(data_dir)))


def programs_of(checks: Sequence[LoadCheck], *, data_dir: Path | None = None) -> Mapping[str, bytes]:
    """What these checks bring along."""
    data = Data(roots_of(data_dir))
    return {name: content for check in checks for name, content in read_programs(check, data).items()}


def refuse_serving(fleet: Hands, wanted: Wanted, hosts: Collection[str]) -> None:
    """LauncherError where an instance runs on these hosts, or something else has their GPUs."""
    deployment, hardware = wanted.deployment, wanted.wish.profile.hardware
    units = {h: deployment.processes_on(h) if deployment else () for h in hosts}
    busy = Probe("command", (hardware.busy, 20)) if hardware and hardware.busy else None
    questions = {
        host: (*(Probe("unit", (p.unit,)) for p in processes), *([busy] if busy else []))
        for host, processes in units.items()
    }
    problems = []
    for host, facts in fleet.ask(
        {h: q for h, q in questions.items() if q}, within_s=wanted.wish.inventory.ssh.answer_within_s
    ).items():
        if isinstance(facts, Problem):
            problems.append(facts)
            continue
        runs = [p.unit for p in units[host] if _active(facts[Probe("unit", (p.unit,))])]
        if runs:
            problems.append(_serving(f"{', '.join(runs)} runs here", host))
        elif busy and (pids := _printed(facts[busy])):
            problems.append(_serving(f"processes {', '.join(pids.split())} have its GPUs", host))
    if problems:
        raise LauncherError(*problems)


def _serving(what: str, host: str) -> Problem:
    return Problem(
        what,
        host,
        "a load beside it makes both slow, and neither figure is worth anything",
        "dsv32-launch down, or --limit to other hosts, or go on: check --load --despite -m WHY",
    )


def _active(answer: object) -> bool:
    return isinstance(answer, Mapping) and answer["active"] in ACTIVE


def _printed(answer: object) -> str:
    """What a command printed that ended well."""
    return str(answer["stdout"]) if isinstance(answer, Mapping) and answer["exit"] == 0 else ""


def refuse_others(fleet: Hands, planned: Sequence[Planned], hosts: Collection[str]) -> None:
    """LockedError where another load or a benchmark still runs, which a controller that is gone has begun."""
    own = {unit_of(m.name) for one in planned for group in one.rounds for m in group}
    for host, facts in answers_of(fleet, dict.fromkeys(hosts, (RUNNING,))).items():
        for unit in units_in(facts[RUNNING]):
            if unit not in own:
                what = "another load is running, and the two would measure each other"
                do = f"wait for it, or end it: ssh {host} systemctl stop {unit}"
                raise LockedError(Problem(what, f"{host}, unit {unit}", do=do))


def measure(
    fleet: Hands,
    wanted: Wanted,
    check: LoadCheck,
    hosts: Collection[str],
    *,
    programs: Mapping[str, bytes],
    listener: Listener,
    interrupted: Callable[[], bool],
) -> Measured:
    """All rounds of one check; hosts that lack its program are told, and take no part."""
    able, lacking = _able(fleet, check, wanted, hosts_of(check, wanted, hosts))
    brought = Brought({name: programs[name] for name in check.files}, listener)
    figures: list[Figure] = []
    lost: list[Problem] = []
    for group in meetings_of(check, wanted, able):
        if interrupted():
            break
        for meeting, told in _round(fleet, group, brought):
            if isinstance(told, Problem):
                lost.append(told)
            else:
                figures += figures_of(meeting, told)
    judged = bool(wanted.wish.profile.hardware and wanted.wish.profile.hardware.gpus_per_host)
    findings = (*findings_of(check, figures, judged=judged), *lacking, *_open(check, lost))
    for finding in findings:
        ends = ", ".join(map(str, finding.ends))
        listener(Event("finding", f"{check.id}: {finding.what}", ends))
    return Measured(check, tuple(figures), findings)


def _round(
    fleet: Hands, group: Sequence[Meeting], brought: Brought
) -> Iterator[tuple[Meeting, tuple[tuple[Told, ...], ...] | Problem]]:
    """All meetings of a round at the same time; no host is in two, so each is known by its first."""
    by_first = {meeting.hosts[0]: meeting for meeting in group}
    answers = fleet.map(by_first, lambda first: measured(fleet, by_first[first], brought))
    return ((by_first[first], told) for first, told in answers.items())


def _able(
    fleet: Hands, check: LoadCheck, wanted: Wanted, hosts: Sequence[str]
) -> tuple[tuple[str, ...], tuple[LoadFinding, ...]]:
    """Hosts that have what the check starts, and a word about the others: a leg whose peer has no program
    would last as long as it may."""
    starts: dict[str, dict[str, Probe]] = {}
    for meeting in (m for group in meetings_of(check, wanted, hosts) for m in group):
        for place, host in enumerate(meeting.hosts):
            for program in sorted({leg.words[place][0] for leg in meeting.legs}):
                starts.setdefault(host, {})[program] = _has(program)
    lacking: dict[str, list[str]] = {}
    for host, facts in answers_of(fleet, {h: tuple(own.values()) for h, own in starts.items()}).items():
        for program in (p for p, probe in starts[host].items() if not _printed(facts[probe])):
            lacking.setdefault(program, []).append(host)
    away = {host for found in lacking.values() for host in found}
    told = (
        LoadFinding(check, "note", "open", tuple(map(End, found)), f"no program {program}")
        for program, found in lacking.items()
    )
    return tuple(h for h in hosts if h not in away), tuple(told)


def _has(program: str) -> Probe:
    return Probe("command", (("sh", "-c", 'command -v "$0"', program), 10))


def _open(check: LoadCheck, lost: Sequence[Problem]) -> Iterator[LoadFinding]:
    """Meetings that came to nothing, because a host was lost or its job broke."""
    for problem in dict.fromkeys(lost):
        host = problem.where.partition(",")[0]
        yield LoadFinding(check, "error", "open", (End(host),), problem.what)


def exit_of(measured: Sequence[Measured], *, interrupted: bool) -> Exit:
    """Errors, and what came to nothing; else warnings, and what hosts lack the programs for."""
    severities = {f.severity for one in measured for f in one.findings}
    if interrupted:
        return Exit.INTERRUPTED
    if "error" in severities:
        return Exit.HOSTS_FAILED
    return Exit.WARNINGS if severities else Exit.DONE
