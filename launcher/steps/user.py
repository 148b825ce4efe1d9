"""user: a local account, its shell, home and groups."""

from __future__ import annotations

from dataclasses import dataclass

from launcher.model.facts import Facts, Probe
from launcher.model.plan import Draft


@dataclass(frozen=True, slots=True)
class Params:
    """An account; an empty `shell` or `home` leaves what is there, or the system's default."""

    name: str
    system: bool = True
    shell: str = ""
    home: str = ""
    groups: tuple[str, ...] = ()
    """Supplementary groups it must be in; others it is in stay."""


def probes(want: Params) -> tuple[Probe, ...]:
    return ()


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    return ()
