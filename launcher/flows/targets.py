"""Targets: which hosts, units and instances a word of the command line means."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from launcher.model.deployment import Deployment, Instance
from launcher.model.problem import InputError, Problem

WATCH, FRONT_ADDRESS = "watch", "front-address"
ROUTING = ("router", "front", WATCH, FRONT_ADDRESS)
"""What there is of on hosts that route; the last two are their roles' one unit on a host: `dsv32-watch`."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of ours on a host, and what it belongs to: an instance, or a word of ROUTING."""

    host: str
    name: str
    owner: str
    guards: bool = False
    """It is the guard of its owner, not what serves."""


def all_units(deployment: Deployment) -> tuple[Unit, ...]:
    """Every unit that serves: engines with their guards, then routers, fronts and what keeps those."""
    processes = [p for i in deployment.instances for p in i.processes]
    engines = [Unit(p.host, p.unit, p.instance) for p in processes]
    guards = [Unit(p.host, p.guard_unit, p.instance, guards=True) for p in processes]
    routers = [Unit(r.host, r.unit, "router") for r in deployment.routers]
    fronts = [Unit(f.host, f.unit, "front") for f in deployment.fronts]
    watches = [Unit(f.host, f"dsv32-{WATCH}.service", WATCH) for f in deployment.fronts]
    addresses = [
        Unit(f.host, f"dsv32-{FRONT_ADDRESS}.service", FRONT_ADDRESS) for f in deployment.fronts if f.shared
    ]
    return (*engines, *guards, *routers, *fronts, *watches, *addresses)


def units_of(deployment: Deployment, target: str) -> tuple[Unit, ...]:
    """The units of an instance, a pool, a host or a word of ROUTING, or one by its name, with or without its
    suffix; all, if the target is empty. InputError where there is none."""
    units = all_units(deployment)
    pools = {i.name: i.pool for i in deployment.instances}
    found = tuple(u for u in units if not target or target in _words(u, pools.get(u.owner, "")))
    if found:
        return found
    known = sorted({w for u in units for w in (u.owner, u.host, pools.get(u.owner, u.owner))})
    raise InputError(unknown(target, "target", known))


def _words(unit: Unit, pool: str) -> tuple[str, ...]:
    return (unit.owner, unit.host, pool, unit.name, unit.name.removesuffix(".service"))


@dataclass(frozen=True, slots=True)
class Limit:
    """What a run is limited to, and what that leaves out."""

    hosts: frozenset[str]
    named: frozenset[str]
    """Hosts named themselves, not only through an instance; all, if the run is not limited."""
    instances: tuple[Instance, ...]
    added: tuple[str, ...]
    """Hosts that were not named, but belong to an instance that was."""
    left_out: tuple[str, ...]
    """Hosts of the inventory that the run does not touch."""


def limit_to(words: Iterable[str], hosts: Iterable[str], deployment: Deployment | None) -> Limit:
    """Hosts and instances named by `words`, an instance always with all its hosts; no words: everything."""
    everything = tuple(hosts)
    instances = deployment.instances if deployment else ()
    named = [w.strip() for w in words if w.strip()]
    known = {*everything, *(i.name for i in instances)}
    if wrong := [unknown(w, "host or instance", sorted(known)) for w in named if w not in known]:
        raise InputError(*wrong)
    picked = tuple(i for i in instances if not named or i.name in named or set(i.hosts) & set(named))
    own = {w for w in named if w in everything}
    reached = {h for i in picked for h in i.hosts} | own if named else set(everything)
    by_instance = {h for i in picked if i.name in named for h in i.hosts}
    return Limit(
        hosts=frozenset(reached),
        named=frozenset(own) if named else frozenset(everything),
        instances=picked,
        added=tuple(h for h in everything if named and h in reached - own - by_instance),
        left_out=tuple(h for h in everything if h not in reached),
    )


def unknown(word: str, kind: str, known: list[str]) -> Problem:
    """No such thing; the nearest names that exist."""
    near = difflib.get_close_matches(word, known, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"one of: {', '.join(known)}"
    return Problem(
        f"`{word}` is no {kind} of this inventory", why=hint, do="dsv32-launch status shows them all"
    )
