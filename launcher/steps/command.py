"""command: a guarded command, the last resort; names what proves it unnecessary."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, MinLen

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.owned import Owned
from launcher.model.plan import Action, Draft, Op

VOLATILE = {"command": frozenset({"seconds", "stdout", "stderr"})}
"""Probe → parts of its answer that move by themselves."""


@dataclass(frozen=True, slots=True)
class Unless:
    """What proves the command unnecessary: a path that exists, or a read-only command that exits 0."""

    path: str = ""
    command: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.path) == bool(self.command):
            raise ValueError("needs one of `path` and `command`")


@dataclass(frozen=True, slots=True)
class Params:
    """`run` is run when `unless` does not hold; afterwards it must hold."""

    run: Annotated[tuple[str, ...], MinLen(1)]
    unless: Unless
    within_s: Annotated[int, Ge(1)] = 60


def owns(want: Params) -> tuple[Owned, ...]:
    """Nothing that its parameters tell."""
    return ()


def probes(want: Params) -> tuple[Probe, ...]:
    """The guard."""
    if want.unless.path:
        return (Probe("path", (want.unless.path,)),)
    return (Probe("command", (want.unless.command, want.within_s)),)


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """A COMMAND, unless the guard holds."""
    have = facts[probes(want)[0]]
    if isinstance(have, Unknown):
        before = str(have)
    elif want.unless.path:
        if have["type"] != "absent":
            return ()
        before = f"{want.unless.path} absent"
    else:
        if have["exit"] == 0:
            return ()
        how = "did not end within" if have["exit"] is None else "exits"
        number = f"{want.within_s} s" if have["exit"] is None else have["exit"]
        before = f"`{shlex.join(want.unless.command)}` {how} {number}"
    op = Op("command", {"words": list(want.run), "environment": {}, "within_s": want.within_s})
    return (Draft(Action.COMMAND, shlex.join(want.run), before, "done", (op,)),)


def undone(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """Nothing: what a command has done, only another one can undo."""
    return ()
