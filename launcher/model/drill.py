"""Drill: a fault that is planted on sandbox hosts, what must be said of it, and what must end it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, MinLen

from launcher.model.profile import EnginePool

Spot: TypeAlias = Literal["process", "leader", "peer", "router", "front", "fleet"]
"""What is broken: each process in turn of the first instance of each pool; its leader; the process after it,
where there is one; the router that users reach; the front; all hosts at once."""
Loss: TypeAlias = Literal["none", "in-flight", "outage"]
"""Requests that may fail: none; those that were in flight when it was planted, on what was broken; and, where
nothing else serves in its place, those that come until it is whole again."""
Power: TypeAlias = Literal["", "freeze", "thaw", "cut", "cut-silent", "heal", "off", "on"]
WORDS = frozenset({"instance", "host", "peer", "unit", "guard", "shared", "local"})
"""What may stand in `{{ }}`: instance and host of the spot, another host of the instance, its unit (engine,
router or front) and its guard; the inventory's paths."""


@dataclass(frozen=True, slots=True)
class Act:
    """One thing done to hosts of the sandbox, past every interface of ours: exactly one of its kinds."""

    signal: Literal["", "KILL", "STOP", "CONT", "SEGV"] = ""
    """Sent to the processes of `unit`."""
    power: Power = ""
    """Of the host: freeze, cable out (`cut-silent`: packets vanish), power off; and back."""
    fill: str = ""
    """A file system that is filled: `/` or `/nvme`."""
    script: str = ""
    """Shell, as root."""
    kernel: tuple[str, ...] = ()
    """Lines that the host's kernel writes."""
    says: tuple[str, ...] = ()
    """Lines that `unit` writes."""
    stand_in: str = ""
    """Of configs/stand-ins/: hardware that is not there answers as if it were."""
    answers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Program → its arguments → what its stand-in answers from now on, to these alone."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Path → what a stand-in file holds from now on."""
    wait_s: Annotated[float, Ge(0)] = 0.0
    unit: str = "{{unit}}"
    """Of `signal` and `says`."""
    process: str = ""
    """Of `signal`: a regular expression of command lines or names in the unit; empty: its main process."""
    on: Literal["host", "instance", "fleet"] = "host"
    """Where: the host of the spot, all hosts of its instance, or all."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Drill:
    """One fault. One file in configs/drills/, by its name."""

    id: str
    title: str
    spot: Spot
    plant: Annotated[tuple[Act, ...], MinLen(1)]
    may_fail: Loss
    whole_within_s: Annotated[int, Ge(1)]
    """Seconds after which all must serve again, from when it was planted."""
    pools: tuple[EnginePool, ...] = ("prefill", "decode")
    """Of `process`, `leader` and `peer`."""
    lift: tuple[Act, ...] = ()
    """What ends the fault, where it does not end by itself; done at the end, too, whatever happened."""
    lasts_s: Annotated[float, Ge(0)] = 0.0
    """After so long it is lifted; 0: at the runbook's step `lift_at`."""
    lift_at: Annotated[int, Ge(0)] = 0
    """The step of the runbook, done by hand, that lifts it."""
    renews: Literal["epoch", "unit", "nothing"] = "nothing"
    """What must be another one afterwards: the instance's epoch; the start of the unit that was signalled."""
    status: str = ""
    """A regular expression that `status` must show."""
    ended: str = ""
    """One of why an epoch has ended since, as guards say it."""
    diagnose: str = ""
    """The signature that `diagnose` must name first."""
    seen_within_s: Annotated[int, Ge(1)] = 60
    runbook: str = ""
    """What ends it; empty: guards and systemd, by themselves."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class StandIn:
    """What programs and files say where the hardware that they tell of is not there."""

    name: str
    about: str
    recorded: str
    """Where these answers are from."""
    programs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Program → its arguments → what it answers."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Path → what it holds."""
    source: str = ""
