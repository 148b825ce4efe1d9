"""LoadCheck, Meeting, Figure, LoadFinding: what hosts must be able to do under load; knows no host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Gt, Le, Lt, MinLen

from launcher.model.check import Owner, Verdict
from launcher.model.inventory import PoolName
from launcher.model.rule import Severity

Together: TypeAlias = Literal["each", "turns", "pairs", "all"]
"""each: every host by itself, all at the same time; turns: one host after the other, for what they share;
pairs: each with each, no host in two pairs at once; all: all hosts together."""
Better: TypeAlias = Literal["higher", "lower"]


@dataclass(frozen=True, slots=True)
class Sample:
    """What a program printed, and what is read out of it."""

    text: str
    reads: Mapping[str, float]
    """Part → figure; the part is empty where the text names none."""


@dataclass(frozen=True, slots=True)
class LoadCheck:
    """One thing that hosts must be able to do. In configs/checks-load/<topic>.yaml, by id."""

    id: str
    topic: str
    title: str
    """What is measured, in a few words."""
    hosts: Together
    command: Annotated[tuple[str, ...], MinLen(1)]
    """Words of the program on each host, without a shell; texts with names."""
    read: str
    """A regular expression. Its group `value` is a figure, of the part that the group `of` says; `values` are
    the figures of parts 0, 1, …, or of one part where `of` says which. Of one part the worst counts."""
    unit: str
    owner: Owner
    remedy: str
    install: str
    """What brings its program to a host that lacks it: one command or edit."""
    why: str
    known_from: str
    samples: Annotated[tuple[Sample, ...], MinLen(1)]
    better: Better = "higher"
    error: float | None = None
    """Worse than this is an error, on hosts with GPUs."""
    warn: float | None = None
    spread: Annotated[float, Gt(0), Lt(1)] = 0.05
    """Worse than the median of the fleet by more than this share is a warning, whatever it is."""
    listens: tuple[str, ...] = ()
    """Of pairs: what the first host runs instead; the second one tries until it is heard, and its output is
    what is read."""
    parts: str = ""
    """A text with names: of each of its words, a rail for instance, one leg, one after the other."""
    crossed: bool = False
    """Each part against the next one of the other host, instead of against its like."""
    both_ways: bool = False
    """Of pairs: once in each direction; the worse one counts."""
    part: str = ""
    """What a number that is read out of the text is one of: `GPU`."""
    counted: str = ""
    """A regular expression that shows that the program ran: the figure is then how often `read` is found,
    whatever its exit status."""
    environment: Mapping[str, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    """Programs of configs/checks-load/files that it needs in `{{ folder }}`."""
    within_s: Annotated[int, Ge(1), Le(3600)] = 60
    """Of one leg."""
    slow: bool = False
    """It takes many minutes: only where it, or its topic, is named."""
    where: str | None = None
    """A text with names; where nothing comes out, the host has no part in it."""
    hardware: tuple[str, ...] = ()
    """Names of configs/hardware, or `gpu`. Empty: any."""
    pools: tuple[PoolName, ...] = ()
    source: str = ""
    """`file:line` of the check."""


@dataclass(frozen=True, slots=True)
class LoadFile:
    """configs/checks-load/<topic>.yaml: what its checks share."""

    about: str
    hardware: tuple[str, ...] = ()
    pools: tuple[PoolName, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class End:
    """Where something is measured: a part of a host, or all of it. Without a host: that part of every one."""

    host: str
    part: str = ""

    def __str__(self) -> str:
        return " ".join(word for word in (self.host, self.part) if word) or "all hosts"


@dataclass(frozen=True, slots=True)
class Leg:
    """One measurement: what each host of the meeting runs, in their order."""

    ends: tuple[End, ...]
    words: tuple[tuple[str, ...], ...]
    listener: int | None = None
    """The host that only listens, by its place; None: all of them measure."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """Hosts that one check measures together, leg after leg."""

    check: LoadCheck
    hosts: tuple[str, ...]
    legs: tuple[Leg, ...]
    environments: tuple[Mapping[str, str], ...]
    """Of each host, in their order."""
    name: str
    """Of its job on each of its hosts: the same for the same words, whoever asks."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What one measurement came to."""

    check: str
    ends: tuple[End, ...]
    value: float | None
    """None: it failed."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LoadFinding:
    """What is too slow, and how that is known."""

    check: LoadCheck
    severity: Severity
    verdict: Verdict
    ends: tuple[End, ...]
    """Whose fault it is; several where figures do not tell which of them."""
    what: str
