"""sysctl: a kernel setting, in its file and, where the kernel lets us, in effect."""

from __future__ import annotations

from dataclasses import dataclass

from launcher.model.facts import Facts, Probe
from launcher.model.plan import Draft


@dataclass(frozen=True, slots=True)
class Params:
    """One `key = value` line of `file` (in /etc/sysctl.d), and the running kernel's value."""

    file: str
    key: str
    value: str


def probes(want: Params) -> tuple[Probe, ...]:
    return ()


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    return ()
