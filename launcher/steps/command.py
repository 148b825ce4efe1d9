"""command: a guarded command, the last resort; names what proves it unnecessary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, MinLen

from launcher.model.facts import Facts, Probe
from launcher.model.plan import Draft


@dataclass(frozen=True, slots=True)
class Unless:
    """What proves the command unnecessary: a path that exists, or a read-only command that exits 0."""

    path: str = ""
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Params:
    """`run` is run when `unless` does not hold; afterwards it must hold."""

    run: Annotated[tuple[str, ...], MinLen(1)]
    unless: Unless
    within_s: Annotated[int, Ge(1)] = 60


def probes(want: Params) -> tuple[Probe, ...]:
    return ()


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    return ()
