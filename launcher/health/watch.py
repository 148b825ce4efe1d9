"""Member, Trouble: what was heard of each process of an instance, and what that means; knows no transport."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from launcher.health.errors import Line, first_error, last_start, systemd_pid
from launcher.health.phases import Progress, advance, behind, budget_s
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.problem import Problem
from launcher.model.profile import Engine

# a host that says nothing for this long is treated like a process that died
silent_for_s = 15.0
# a healthy API process answers in milliseconds; a longer wait would only hold up the other answers
answer_within_s = 2
lines_at_once = 5000


@dataclass(frozen=True, slots=True)
class Member:
    """One process of the instance under watch, and what was heard of it so far."""

    progress: Progress
    heard_s: float
    """When its host last answered, by the controller's monotonic clock."""
    invocation: str = ""
    """systemd's id of this start, so that lines of an earlier one are not taken for its own."""
    cursor: str = "start"
    lines: tuple[Line, ...] = ()
    unit: Mapping[str, Any] = field(default_factory=dict)
    silence: str = ""
    """Why its host does not answer; empty while it does."""

    @property
    def dead(self) -> bool:
        """Ended, with whatever status: vLLM ends with status 0 when a peer of its group dies.

        Its guard may have started it again between two looks.
        """
        started_again = self.unit.get("invocation", "") not in ("", self.invocation)
        return started_again or self.unit.get("active") in ("failed", "inactive")

    @property
    def where(self) -> str:
        """Host and unit."""
        return f"{self.progress.process.host}, unit {self.progress.process.unit}"

    @property
    def ending(self) -> str:
        """How the process ended, in words."""
        status, result = self.unit.get("exit_status"), self.unit.get("result")
        match result:
            case "success" | "exit-code":
                return f"ended with exit status {status}"
            case "signal" | "core-dump":
                return f"killed by signal {status}"
            case _:
                return f"ended with exit status {status} ({result})"


def questions(member: Member, engine: Engine) -> tuple[Probe, ...]:
    """All that one poll asks about a process: its unit, the new lines of its log, and whether it answers."""
    unit = Probe("unit", (member.progress.process.unit,))
    ready = (ready_probe(url, engine) for url in api_urls(member))
    journal = journal_probe(member)
    return (unit, *ready, journal) if journal else (unit, *ready)


def journal_probe(member: Member) -> Probe | None:
    """The new lines of its log; none before its invocation is known.

    systemd forgets the invocation of a unit that ended well: what is left then are the unit's last lines,
    of which those since its last start count.
    """
    unit = member.progress.process.unit
    if member.invocation:
        return Probe("journal", (unit, member.invocation, lines_at_once, member.cursor))
    return Probe("journal", (unit, "", lines_at_once, "")) if member.dead else None


def api_urls(member: Member) -> tuple[str, ...]:
    """Every address at which the process must answer."""
    return tuple(u for e in member.progress.process.endpoints if e.name == "api" for u in e.urls())


def ready_probe(url: str, engine: Engine) -> Probe:
    """Does this API endpoint say that it is ready?"""
    return Probe("http", ("GET", url + engine.ready_path, "", (), answer_within_s))


def hear(member: Member, facts: Facts | Problem, engine: Engine, now_s: float) -> Member:
    """The member after one poll."""
    if isinstance(facts, Problem):
        return replace(member, silence=facts.what)
    unit = facts[Probe("unit", (member.progress.process.unit,))]
    asked = journal_probe(member)
    journal: Any = facts[asked] if asked else {"entries": [], "cursor": member.cursor}
    for answer in (unit, journal):
        if isinstance(answer, Unknown):
            return replace(member, silence=answer.reason)
    entries = journal["entries"] if member.invocation else last_start(journal["entries"])
    fresh = tuple(Line(e["time"], e["message"]) for e in entries)
    own = (Line(e["time"], e["message"]) for e in entries if e["pid"] != systemd_pid)
    progress = advance(member.progress, own, engine.phases, now_s)
    answers = [facts[ready_probe(url, engine)] for url in api_urls(member)]
    ready = bool(answers) and all(not isinstance(a, Unknown) and a.get("status") == 200 for a in answers)
    return replace(
        member,
        progress=replace(progress, ready=ready),
        heard_s=now_s,
        invocation=member.invocation or unit["invocation"],
        cursor=journal["cursor"],
        lines=member.lines + fresh,
        unit=unit,
        silence="",
    )


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why the wait ends early: a process died, its host is silent, or it is late."""

    member: Member
    what: str


def trouble(members: Sequence[Member], engine: Engine, now_s: float) -> Trouble | None:
    """The first thing that is wrong, the surest before the vaguer; None while there is hope."""
    dead = [m for m in members if m.dead]
    if dead:
        # the one that failed, rather than one that left when it saw that
        member = min(dead, key=lambda m: m.unit.get("result") == "success")
        return Trouble(member, member.ending)
    silent = [m for m in members if m.silence and now_s - m.heard_s > silent_for_s]
    if silent:
        return Trouble(silent[0], f"has not been heard of for {now_s - silent[0].heard_s:.0f} s")
    late = behind((m.progress for m in members), engine.phases, now_s)
    if late:
        phase = engine.phases[late.phase].name
        member = next(m for m in members if m.progress.process == late.process)
        return Trouble(
            member,
            f"is still in phase {phase} after {now_s - late.since_s:.0f} s, "
            f"budget {budget_s(late, engine.phases)} s",
        )
    return None


def explain(found: Trouble, members: Sequence[Member], engine: Engine, saved: str) -> Problem:
    """The Problem a person reads: which process, how, and the first line that says why. `saved`: its log."""
    member = found.member
    instance = member.progress.process.instance
    error = first_error({m.progress.process.host: m.lines for m in members}, engine)
    if error:
        why = f"first error, on {error.host}: {error.text}"
    elif member.silence:
        why = member.silence
    else:
        why = f"its last line: {member.progress.last}" if member.progress.last else "its log is empty"
    return Problem(
        what=f"{instance} did not become ready: the process on {member.progress.process.host} {found.what}",
        where=member.where,
        why=why,
        do=f"dsv32-launch diagnose {instance}",
        more=", ".join(filter(None, (f"dsv32-launch logs {instance}", saved))),
    )


def unfinished(members: Sequence[Member], engine: Engine) -> Problem:
    """Nobody looks any more, and the instance goes on starting."""
    last = min((m.progress for m in members), key=lambda p: p.phase)
    instance, phase = last.process.instance, engine.phases[last.phase].name
    what = f"{instance} is still starting, in phase {phase} on {last.process.host}"
    return Problem(what, why="the run was interrupted; the processes go on", do="dsv32-launch status")
