"""folder: a folder at a path, with mode and owner."""

from __future__ import annotations

from dataclasses import dataclass

from launcher.model.facts import Facts, Probe
from launcher.model.plan import Draft
from launcher.steps.attributes import Mode


@dataclass(frozen=True, slots=True)
class Params:
    """A folder; what is in it is not looked at."""

    path: str
    mode: Mode = "0755"
    owner: str = "root"
    group: str = "root"


def probes(want: Params) -> tuple[Probe, ...]:
    return ()


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    return ()
