"""package: distribution packages, at a version where one is pinned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from launcher.model.facts import Facts, Probe
from launcher.model.plan import Draft


@dataclass(frozen=True, slots=True)
class Params:
    """Packages that must be installed."""

    names: Mapping[str, str] | tuple[str, ...]
    """Package → version, empty for any; or just names."""
    mirror: str = ""
    """Folder of packages on the hosts to install from; empty: apt's own sources."""


def probes(want: Params) -> tuple[Probe, ...]:
    return ()


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    return ()
