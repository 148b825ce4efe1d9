"""What is drained: read from the hosts that route, and respected by whoever plans."""

from __future__ import annotations

import json
from collections.abc import Iterator

from launcher.health.hands import Hands, look_within_s
from launcher.model.deployment import Drained
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.problem import LauncherError, Problem
from launcher.model.wish import Wanted
from launcher.resolve import resolve

PATH = "/etc/dsv32/drained.json"
BYTES = 65536
MOVING = "moving: "
"""Begins the reason of a drain that a run makes while it moves an instance: the next run may end it."""


def respecting(fleet: Hands, wanted: Wanted) -> Wanted:
    """What must be true, with what people have drained kept from requests."""
    drained = lasting(drained_on(fleet, wanted))
    return resolve(wanted.wish, drained) if drained else wanted


def as_it_is(fleet: Hands, wanted: Wanted) -> Wanted:
    """The same for whoever looks: also what a run keeps from requests only while it moves it."""
    drained = drained_on(fleet, wanted)
    return resolve(wanted.wish, drained) if drained else wanted


def lasting(drained: tuple[Drained, ...]) -> tuple[Drained, ...]:
    """What is drained until somebody gives it back, not only while it moves."""
    return tuple(d for d in drained if not d.why.startswith(MOVING))


def drained_on(fleet: Hands, wanted: Wanted) -> tuple[Drained, ...]:
    """What any host that routes says is drained, by instance. One that does not answer says nothing."""
    hosts = [front.host for front in wanted.deployment.fronts] if wanted.deployment else []
    if not hosts:
        return ()
    probe = Probe("read", (PATH, BYTES))
    answers = fleet.ask(dict.fromkeys(hosts, (probe,)), within_s=look_within_s)
    found: dict[str, Drained] = {}
    for host, facts in answers.items():
        told = facts[probe] if isinstance(facts, Facts) else {}
        for entry in _entries(host, "" if isinstance(told, Unknown) else told.get("text", "")):
            known = found.get(entry.instance)
            found[entry.instance] = min(known, entry, key=lambda d: d.when) if known else entry
    return tuple(sorted(found.values(), key=lambda d: d.instance))


def _entries(host: str, text: str) -> Iterator[Drained]:
    try:
        for entry in json.loads(text or "[]"):
            yield Drained(**{k: str(v) for k, v in entry.items()})
    except (ValueError, TypeError, AttributeError):
        what = f"{PATH} is not what `drain` writes"
        raise LauncherError(
            Problem(what, host, do=f"correct it, or remove it: ssh {host} rm {PATH}")
        ) from None
