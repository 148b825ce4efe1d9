"""LogLine, Signature: a line of a log, and what is known of lines like it; knows neither hosts nor files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, MinLen

Level: TypeAlias = Literal["info", "warning", "error"]
Reach: TypeAlias = Literal["host", "instance", "everywhere"]
"""How far away the cause of a consequence may be: on the same host, in the same instance (or on a host of
it), or anywhere."""

ANY = "any"
"""In `of`: whatever is a cause, known or not."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line that a unit, or the kernel of a host, has written."""

    host: str
    unit: str
    """`dsv32-decode-0`; `kernel`; of a file that does not tell, its name."""
    time_s: float
    """Seconds since the epoch by the clock of its host; 0 where nothing tells."""
    text: str
    instance: str = ""
    """`decode-0`, `router`, `front`, `watch` or `front-address`; empty: the host's own, or unknown."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A read-only command on the host of the line, and what its output then shows."""

    run: Annotated[tuple[str, ...], MinLen(1)]
    finds: str
    """A regular expression, in what it writes. Not found: it is not so, or no longer."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a log line means. In configs/signatures/<topic>.yaml, by id.

    `likely`, `do` and `confirm` may hold `{host}`, `{unit}`, `{instance}` and named groups of the patterns.
    """

    id: str
    topic: str
    patterns: Annotated[tuple[str, ...], MinLen(1)]
    """Regular expressions; any of them, found in the line."""
    likely: str
    """The likely cause in one sentence; of a consequence, what happened."""
    do: str
    """The one thing to do: a command of ours, `on {host}: COMMAND`, or `in FILE: EDIT`."""
    known_from: str
    """An issue, a pull request, a file of a release, a run."""
    samples: Annotated[tuple[str, ...], MinLen(1)]
    """Lines that it is found in; companions on lines of their own."""
    near: tuple[str, ...] = ()
    """Lines much alike that mean something else."""
    severity: Literal["error", "warning"] = "error"
    """error: something does not serve, or answers wrongly; warning: worth knowing when something does not."""
    level: Level = "error"
    """The lowest level at which it is written; what a line of a lower level quotes is not meant."""
    beside: tuple[str, ...] = ()
    """Regular expressions that must each be found in the lines around it, in the same log."""
    unless: tuple[str, ...] = ()
    """Regular expressions that must not be found there."""
    over: str = ""
    """A regular expression of a later line in the same log that says it has passed: then it means nothing."""
    times: Annotated[int, Ge(1)] = 1
    """So many lines of one log, or it means nothing."""
    spreads: bool = True
    """Others may come of it. False: answers suffer, and nothing dies of it."""
    running: bool = False
    """It counts only where something of ours ran on the host before: a boot is no failure by itself."""
    role: Literal["cause", "consequence"] = "cause"
    """consequence: something else must have happened; where that is not seen, it is said so."""
    of: tuple[str, ...] = ()
    """What explains it when it came first: ids, topics (files), or `any`. A cause may have it, too."""
    reach: Reach = "instance"
    within_s: Annotated[int, Ge(1)] = 900
    """How long before it what explains it may have been."""
    since: str = ""
    """First release of vLLM that it holds for; empty: all."""
    until: str = ""
    """First release that it no longer holds for."""
    not_this: tuple[str, ...] = ()
    """What it looks like, and is not."""
    confirm: Confirmation | None = None
    source: str = ""
    """`file:line` of the signature."""


@dataclass(frozen=True, slots=True)
class LogForms:
    """configs/logs.yaml: how programs mark what their lines are worth, and lines that mean nothing."""

    info: tuple[str, ...]
    """Regular expressions of lines that say they are no more than news."""
    warning: tuple[str, ...]
    error: tuple[str, ...]
    noise: tuple[str, ...]
    """Of lines that look bad and come with every start."""
    secrets: tuple[str, ...]
    """Regular expressions of what nobody else may read, in group `secret`."""
    version: str
    """Of the line in which an engine says its release, group `version`."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class LogKnowledge:
    """All that is known of log lines."""

    signatures: tuple[Signature, ...]
    forms: LogForms
