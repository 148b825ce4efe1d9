"""lock, unlock: a person keeps the fleet from everybody else's runs, and gives it back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from launcher.execute.hands import Hands
from launcher.flows.logs import UNITS_OF_TIME
from launcher.health.hands import look_within_s
from launcher.model.facts import Facts
from launcher.model.hold import HOLD, PATH, Hold, hold_in, hold_text
from launcher.model.plan import Op
from launcher.model.problem import InputError, LockedError, Problem
from launcher.model.run import Event, Listener

WITHIN_S = 30.0


def seconds_in(text: str) -> int:
    """`30m`, `2h`, `1d` as seconds; InputError for anything else."""
    if match := re.fullmatch(r"([1-9]\d{0,5})([smhd])", text.strip()):
        return int(match[1]) * UNITS_OF_TIME[match[2]]
    raise InputError(Problem(f"`{text}` is no length of time", "--for", do="write 30m, 2h or 1d"))


def hold(fleet: Hands, hosts: Iterable[str], mine: Hold, listener: Listener) -> tuple[Problem, ...]:
    """Write the hold onto every host, over an older one of the same person.

    LockedError, and nothing written, where somebody else holds a host. The hosts are asked once more at the
    end: of two people at the same moment, who finds the other's hold is told so.
    """
    names = tuple(hosts)
    seen, lost = read_holds(fleet, names)
    refuse_others(seen, mine.who, mine.since)
    op = Op("put", {"path": PATH, "mode": "0644", "owner": "root", "group": "root"}, hold_text(mine).encode())
    lost |= _do(fleet, seen, op, listener)
    after, silent = read_holds(fleet, seen.keys() - lost.keys())
    refuse_others(after, mine.who, mine.since)
    return tuple({**silent, **lost}.values())


def give_up(
    fleet: Hands, hosts: Iterable[str], who: str, now: str, listener: Listener, *, force: bool
) -> tuple[tuple[Hold, ...], tuple[Problem, ...]]:
    """Take the holds away: the holds there were, and what went wrong. LockedError for somebody else's, unless
    `force`."""
    seen, lost = read_holds(fleet, tuple(hosts))
    if not force:
        refuse_others(seen, who, now)
    held = {host: found for host, found in seen.items() if found}
    lost |= _do(fleet, held, Op("remove", {"path": PATH}), listener)
    return tuple(dict.fromkeys(held.values())), tuple(lost.values())


def read_holds(fleet: Hands, hosts: Iterable[str]) -> tuple[dict[str, Hold | None], dict[str, Problem]]:
    """Host → its hold; and the hosts that do not answer."""
    answers = fleet.ask(dict.fromkeys(hosts, (HOLD,)), within_s=look_within_s)
    seen = {host: hold_in(a[HOLD]) for host, a in answers.items() if isinstance(a, Facts)}
    return seen, {host: a for host, a in answers.items() if isinstance(a, Problem)}


def refuse_others(seen: dict[str, Hold | None], who: str, now: str) -> None:
    """LockedError where somebody else holds a host."""
    others = [h.problem(host) for host, h in seen.items() if h and h.keeps_out(who, now)]
    if others:
        raise LockedError(*others)


def _do(fleet: Hands, hosts: Iterable[str], op: Op, listener: Listener) -> dict[str, Problem]:
    """One op on every host, all at once; the hosts where it was not done."""

    def one(host: str) -> Problem | None:
        done = fleet.do(host, (op,), listener=listener, within_s=WITHIN_S, subject="hold")
        event = Event("change-done", f"{op.verb} {PATH}", host, "hold")
        listener(replace(event, kind="change-failed") if done.error else event)
        return done.error

    return {host: problem for host, problem in fleet.map(hosts, one).items() if problem}
