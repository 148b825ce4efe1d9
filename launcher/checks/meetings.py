"""Load checks and a fleet → Meetings, round after round, every word filled in; knows no answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from launcher.checks.asked import GPU
from launcher.checks.rounds import rounds_of
from launcher.model.job import folder_of, name_of
from launcher.model.load_check import End, Leg, LoadCheck, Meeting
from launcher.model.wish import Wanted
from launcher.resolve.expand import shared_values
from launcher.resolve.templates import compiled, is_template

JOBS = "load"
"""Their names begin so."""
PROGRAMS = folder_of("load-programs")
"""What checks bring along; all of them share it."""
FIRST_PORT = 18600
"""Of the first leg of a meeting, and up: above perftest's own default, so that nobody's by hand is met."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One check, and all it will do."""

    check: LoadCheck
    rounds: tuple[tuple[Meeting, ...], ...]


def planned(checks: Iterable[LoadCheck], wanted: Wanted, hosts: Iterable[str]) -> tuple[Planned, ...]:
    """Each check that has something to do on these hosts. InputError where a name leads nowhere."""
    names = tuple(hosts)
    found = (Planned(check, meetings_of(check, wanted, hosts_of(check, wanted, names))) for check in checks)
    return tuple(one for one in found if one.rounds)


def hosts_of(check: LoadCheck, wanted: Wanted, hosts: Iterable[str]) -> tuple[str, ...]:
    """Those of these hosts that a check is for."""
    hardware, inventory = wanted.wish.profile.hardware, wanted.wish.inventory
    if check.hardware:
        has = {hardware.name, *([GPU] if hardware.gpus_per_host else [])} if hardware else set()
        if not has & set(check.hardware):
            return ()
    pooled = {h for name, pool in inventory.pools.items() if name in check.pools for h in pool.hosts}
    values = dict(shared_values(wanted.wish, wanted.deployment))

    def takes_part(name: str) -> bool:
        known = {**values, "host": inventory.hosts[name]}
        return check.where is None or bool(_filled(check.where, check, known).strip())

    return tuple(h for h in hosts if (not check.pools or h in pooled) and takes_part(h))


def meetings_of(check: LoadCheck, wanted: Wanted, hosts: Sequence[str]) -> tuple[tuple[Meeting, ...], ...]:
    """Round after round, the meetings of these hosts."""
    rounds = rounds_of(check.hosts, hosts)
    return tuple(tuple(_meeting(check, wanted, group) for group in groups) for groups in rounds)


def _meeting(check: LoadCheck, wanted: Wanted, group: tuple[str, ...]) -> Meeting:
    values = {
        **shared_values(wanted.wish, wanted.deployment),
        "folder": PROGRAMS,
        "hosts": len(group),
    }
    environments = tuple(_environment(check, wanted, group, host, values) for host in group)
    legs = tuple(_legs(check, wanted, group, values))
    name = name_of(f"{JOBS}-{check.id}", [check.id, group, environments, [leg.words for leg in legs]])
    return Meeting(check, group, legs, environments, name)


def _environment(
    check: LoadCheck, wanted: Wanted, group: tuple[str, ...], host: str, values: Mapping[str, object]
) -> dict[str, str]:
    hosts = wanted.wish.inventory.hosts
    known = {**values, "host": hosts[host], "first": hosts[group[0]], "rank": group.index(host)}
    return {name: _filled(text, check, known) for name, text in check.environment.items()}


def _legs(
    check: LoadCheck, wanted: Wanted, group: tuple[str, ...], values: Mapping[str, object]
) -> Iterator[Leg]:
    parts: Sequence[str] = ("",)
    if check.parts:
        parts = _filled(check.parts, check, {**values, "host": wanted.wish.inventory.hosts[group[0]]}).split()
    ways = (group, group[::-1]) if check.both_ways else (group,)
    for index in range(len(parts)):
        at = (index + 1) % len(parts) if check.crossed else index
        for way, ordered in enumerate(ways):
            known = {**values, "port": FIRST_PORT + len(ways) * index + way}
            # the first in `ordered` listens, and has the part as it is named; its peers have the other one
            own = {host: at if place else index for place, host in enumerate(ordered)}
            words = {host: _words(check, wanted, ordered, host, own, parts, known) for host in ordered}
            yield Leg(
                ends=tuple(End(host, parts[own[host]]) for host in ordered),
                words=tuple(words[host] for host in group),
                listener=group.index(ordered[0]) if check.listens else None,
            )


def _words(
    check: LoadCheck,
    wanted: Wanted,
    ordered: tuple[str, ...],
    host: str,
    own: Mapping[str, int],
    parts: Sequence[str],
    known: Mapping[str, object],
) -> tuple[str, ...]:
    """What one host runs: `rank` is its place, `first` the host that all others turn to."""
    hosts = wanted.wish.inventory.hosts
    rank = ordered.index(host)
    values = {
        **known,
        "host": hosts[host],
        "first": hosts[ordered[0]],
        "rank": rank,
        "part": parts[own[host]],
        "index": own[host],
    }
    line = check.listens if check.listens and rank == 0 else check.command
    return tuple(_filled(word, check, values) for word in line)


def _filled(text: str, check: LoadCheck, values: Mapping[str, object]) -> str:
    if not is_template(text):
        return text
    path, _, line = check.source.rpartition(":")
    return compiled(text, path, int(line)).render(values)
