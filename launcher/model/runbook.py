"""Runbook: what a person on call does about something, step by step; knows neither hosts nor commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, MinLen

Subject: TypeAlias = Literal["instance", "host", "pool", "fleet"]
"""What a runbook is run for; `fleet`: everything, so that nothing is to be named."""
Demand: TypeAlias = Literal["minimum", "alone"]
"""minimum: each pool of the target keeps `minimum` serving instances without it, or it does not serve anyway;
alone: no other run is at work on the target's hosts, and nobody else holds them."""

VERBS = frozenset(
    {
        *("audit", "bundle", "check", "diagnose", "down", "drain", "fit", "lint", "lock", "logs"),
        *("plan", "restart", "runs", "status", "undrain", "unlock", "up"),
    }
)
"""The commands of ours that a step may be."""
LEAVES: Mapping[str, tuple[str, str]] = {
    "lock": ("unlock", "the fleet is held by you"),
    "drain": ("undrain", "{} gets no requests"),
    "down": ("up", "{} is stopped"),
}
"""Verb of what lasts until somebody ends it → the verb that ends it, and what is so meanwhile."""
PROGRAM = "dsv32-launch"
NAMES: Mapping[Subject, frozenset[str]] = {
    "instance": frozenset({"instance", "host", "pool", "shared", "local"}),
    "host": frozenset({"instance", "host", "shared", "local"}),
    "pool": frozenset({"instance", "host", "pool", "shared", "local"}),
    "fleet": frozenset({"instance", "host", "shared", "local"}),
}
"""What may stand in `{{ }}`, by what the runbook is for. A step that names `instance` or `host` is done for
each instance or host of the target; `shared` and `local` are the inventory's paths."""


@dataclass(frozen=True, slots=True)
class OnHost:
    """A read-only command on a host, and what its output then shows."""

    run: Annotated[tuple[str, ...], MinLen(1)]
    finds: str = ""
    """A regular expression that must be found in what it writes."""
    lacks: str = ""
    """One that must not. With neither, it ends with status 0."""
    hosts: str = ""
    """A host, pool, instance, `router` or `front`; empty: each host of the target."""
    within_s: Annotated[int, Ge(0)] = 0
    """So long it is asked again: a host that boots, memory that is freed."""


@dataclass(frozen=True, slots=True)
class RunbookStep:
    """One thing to do: exactly one of `do`, `on_host` and `by_hand`."""

    say: str
    """What it is for, in one sentence."""
    expect: str
    """What is seen when it went well."""
    do: str = ""
    """A command of ours, as it is typed: `dsv32-launch drain {{instance}}`; one of VERBS."""
    on_host: OnHost | None = None
    by_hand: str = ""
    """What a person does outside of us, and then says so."""
    only_if: tuple[Demand, ...] = ()
    """What must hold before it."""
    exits: Annotated[tuple[int, ...], MinLen(1)] = (0,)
    """How `do` ends when it went well; `diagnose` ends with 1 when it found something."""
    otherwise: str = ""
    """The runbook to go on with if not; empty: escalate."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Runbook:
    """An on-call remedy. One file in configs/runbooks/, by its name."""

    id: str
    title: str
    target: Subject
    seen: Annotated[tuple[str, ...], MinLen(1)]
    """Alerts and metrics that call for it, in words."""
    who: str
    """Who may run it."""
    danger: str
    """What may go wrong, and who notices; may hold names."""
    steps: Annotated[tuple[RunbookStep, ...], MinLen(1)]
    escalate: str
    """Whom to ask, and with what, when a step does not go well."""
    signatures: tuple[str, ...] = ()
    """Ids of log lines that call for it; of each signature there is at most one runbook."""
    source: str = ""
