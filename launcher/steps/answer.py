"""answer: what a read-only command must answer; only for checks, it has no hands."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, MinLen

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.plan import Action, Draft


@dataclass(frozen=True, slots=True)
class Params:
    """A command that changes nothing, its exit status, and what its output must hold."""

    command: Annotated[tuple[str, ...], MinLen(1)]
    exit: int = 0
    output: str = ""
    """A regular expression that must be found in its output; empty: any output."""
    within_s: Annotated[int, Ge(1)] = 30

    def __post_init__(self) -> None:
        try:
            re.compile(self.output)
        except re.error as error:
            raise ValueError(f"`output` is no regular expression: {error}") from None


def probes(want: Params) -> tuple[Probe, ...]:
    """The command."""
    return (Probe("command", (want.command, want.within_s)),)


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """A draft without ops where the answer is another one."""
    have = facts[probes(want)[0]]
    if isinstance(have, Unknown):
        before = str(have)
    elif have["exit"] != want.exit:
        before = f"exit {have['exit']}" + _first_line(have["stderr"] or have["stdout"])
    elif not re.search(want.output, have["stdout"], re.MULTILINE):
        before = "output" + _first_line(have["stdout"] or "(empty)")
    else:
        return ()
    after = f"output with `{want.output}`" if want.output else f"exit {want.exit}"
    return (Draft(Action.COMMAND, f"`{shlex.join(want.command)}`", before, after, ()),)


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return f" `{line[:120]}`" if line else ""
