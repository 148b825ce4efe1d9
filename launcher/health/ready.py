"""await_ready: an instance's start, watched phase by phase until it answers, dies or is late."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from launcher.health.guard import guard_probe, guard_word, last_end
from launcher.health.hands import Hands, look_within_s
from launcher.health.phases import Progress
from launcher.health.watch import Member, Trouble, explain, hear, questions, trouble, unfinished
from launcher.model.deployment import Instance
from launcher.model.facts import Facts, Probe
from launcher.model.problem import Problem
from launcher.model.profile import Engine
from launcher.model.run import Event, Listener
from launcher.model.wish import Wanted
from launcher.wait import CLOCK, Clock, End, never, wait_for

SaveLog: TypeAlias = Callable[[str, str, str], str]
"""Host, unit and the text of its log → where it was saved."""

POLL_EVERY_S = 1.0
"""A poll is one small request a host; a death is seen within two of them."""


def await_ready(
    fleet: Hands,
    wanted: Wanted,
    instance: Instance,
    listener: Listener,
    *,
    save_log: SaveLog | None = None,
    interrupted: Callable[[], bool] = never,
    clock: Clock = CLOCK,
) -> Problem | None:
    """Watch the instance until every API endpoint answers; None then, else what went wrong, and where.

    It only looks: whoever started the instance stops what is left of it. Interrupted, it looks no further.
    """
    engine = wanted.wish.profile.engine
    assert engine is not None, "an instance has an engine"
    start_s = clock.now_s()
    members = tuple(Member(Progress(p, 0, start_s), heard_s=start_s) for p in instance.processes)
    announce(members, engine, listener)

    def look() -> Trouble | Literal["starting", "ready"]:
        nonlocal members
        before, members = members, poll(fleet, members, engine, clock)
        news = (m for m, old in zip(members, before, strict=True) if m.progress.phase != old.progress.phase)
        announce(tuple(news), engine, listener)
        if all(m.progress.ready for m in members if m.progress.answers):
            return "ready"
        return trouble(members, engine, clock.now_s()) or "starting"

    waited = wait_for(
        look,
        lambda now: now != "starting",
        every_s=POLL_EVERY_S,
        interrupted=interrupted,
        clock=clock,
    )
    if waited.end is End.INTERRUPTED:
        return unfinished(members, engine)
    if not isinstance(waited.answer, Trouble):
        data = {"took_s": round(waited.took_s, 1)}
        listener(Event("phase", "healthy", subject=instance.name, data=data))
        return None
    members = poll(fleet, members, engine, clock)  # the peers' last lines, which may hold the cause
    first = first_to_end(fleet, instance, members)
    found = Trouble(first, first.ending) if first else waited.answer
    processes = [(m.progress.process, text_of(m)) for m in members]
    saved = [save_log(p.host, p.unit, text) for p, text in processes] if save_log else []
    return explain(found, members, engine, ", ".join(saved))


def poll(fleet: Hands, members: Sequence[Member], engine: Engine, clock: Clock) -> tuple[Member, ...]:
    """Hear of every member once: one request a host, all hosts at once."""
    asked: dict[str, tuple[Probe, ...]] = {m.progress.process.host: questions(m, engine) for m in members}
    facts = fleet.ask(asked, within_s=look_within_s)
    now_s = clock.now_s()
    return tuple(hear(m, facts[m.progress.process.host], engine, now_s) for m in members)


def first_to_end(fleet: Hands, instance: Instance, members: Sequence[Member]) -> Member | None:
    """Of several dead processes the one whose end its guards took for the reason to stop the others."""
    dead = {m.progress.process.host: m for m in members if m.dead}
    if len(dead) < 2:
        return None
    probe = guard_probe(instance.name)
    answers = fleet.ask(dict.fromkeys(instance.hosts, (probe,)), within_s=look_within_s)
    end = last_end(guard_word(a[probe]) for a in answers.values() if isinstance(a, Facts))
    return dead.get(end.host) if end else None


def announce(members: Sequence[Member], engine: Engine, listener: Listener) -> None:
    """Tell which phase these members are in now."""
    for m in members:
        phase = engine.phases[m.progress.phase]
        data = {"within_s": phase.within_s, "line": m.progress.last}
        listener(Event("phase", phase.name, m.progress.process.host, m.progress.process.instance, data))


def text_of(member: Member) -> str:
    """The member's log as it was read, each line with its time."""
    stamps = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(line.time_s)) for line in member.lines)
    return "".join(f"{stamp} {line.text}\n" for stamp, line in zip(stamps, member.lines, strict=True))
