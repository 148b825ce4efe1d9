"""KINDS: the kinds of desired state a role may use, each a module of this folder and found there by itself.

A module is a kind if it has `Params`. All that is special about a kind stands in its module: what it asks
hosts, what it changes, what it owns, what of its answers moves by itself, and what goes with its role.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, Protocol

from launcher.model.facts import Facts, Probe
from launcher.model.owned import Owned
from launcher.model.plan import Draft


class Kind(Protocol):
    """What a module of this folder offers; `Params` is a frozen dataclass that a role's step fills.

    It may also have `Slot`, filled once for each router of a host, and `VOLATILE`: probe → parts of its
    answer that move by themselves.
    """

    Params: type[Any]

    def owns(self, want: Any, /) -> tuple[Owned, ...]:
        """What no other step of the host may want in another way."""

    def probes(self, want: Any, /) -> tuple[Probe, ...]:
        """The questions that tell whether `want` is true; the same for equal wants."""

    def changes(self, want: Any, facts: Facts, /) -> tuple[Draft, ...]:
        """The differences between host and `want`, in the order in which they are removed; () is none."""

    def undone(self, want: Any, facts: Facts, /) -> tuple[Draft, ...]:
        """What takes the step's work away again; () where nothing of it is there, or all of it stays."""


def kinds_in(path: Iterable[str], package: str) -> dict[str, Kind]:
    """The kinds of a folder of modules, by name."""
    names = sorted(found.name for found in pkgutil.iter_modules(path))
    modules: dict[str, Any] = {name: import_module(f"{package}.{name}") for name in names}
    return {name: module for name, module in modules.items() if hasattr(module, "Params")}


KINDS: Mapping[str, Kind] = kinds_in(__path__, __name__)
VOLATILE: Mapping[str, frozenset[str]] = {
    probe: parts for kind in KINDS.values() for probe, parts in getattr(kind, "VOLATILE", {}).items()
}
"""Probe → parts of its answer that move by themselves."""
