"""Problem(what, where, why, do): the one shape of everything that can go wrong; knows nothing of printing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every command; `--help` prints them."""

    DONE = 0
    HOSTS_FAILED = 1
    INPUT_WRONG = 2
    CHANGES = 3
    """`plan` found changes; for `lint`, WARNINGS; for `bench`, CANNOT_TELL."""
    WARNINGS = 3
    CANNOT_TELL = 3
    LOCKED = 4
    SLA_MISSED = 5
    PLAN_REFUSED = 6
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and the way out of it.

    `what` names thing, state and number (lower case, no full stop); `where` is `path:line` or
    `host, unit`; `why` is the cause or the source of the rule; `do` is what a person types or edits.
    """

    what: str
    where: str = ""
    why: str = ""
    do: str = ""
    more: str = ""


class LauncherError(Exception):
    """A failure that is the user's or the fleet's, never a bug of ours; carries all Problems found."""

    exit_code = Exit.HOSTS_FAILED

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{p.where}: {p.what}" if p.where else p.what for p in problems))


class InputError(LauncherError):
    """A file or an argument is wrong; nothing was touched."""

    exit_code = Exit.INPUT_WRONG


class LockedError(LauncherError):
    """Another run holds a host of this fleet."""

    exit_code = Exit.LOCKED


class PlanRefusedError(LauncherError):
    """The hosts are not what the plan was computed from: stale plan, or a surprise between stages."""

    exit_code = Exit.PLAN_REFUSED
