"""KINDS: the kinds of desired state a role may use, one module each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from launcher.model.facts import Facts, Probe
from launcher.model.plan import Draft
from launcher.steps import (
    absent,
    boot,
    command,
    file,
    folder,
    link,
    package,
    sysctl,
    turns,
    unit,
    user,
    venv,
    weights,
)


class Kind(Protocol):
    """What a module of this folder offers; `Params` is a frozen dataclass that a role's step fills."""

    Params: type[Any]

    def probes(self, want: Any, /) -> tuple[Probe, ...]:
        """The questions that tell whether `want` is true; the same for equal wants."""

    def changes(self, want: Any, facts: Facts, /) -> tuple[Draft, ...]:
        """The differences between host and `want`, in the order in which they are removed; () is none."""


KINDS: Mapping[str, Kind] = {
    "absent": absent,
    "boot": boot,
    "command": command,
    "file": file,
    "folder": folder,
    "link": link,
    "package": package,
    "sysctl": sysctl,
    "turns": turns,
    "unit": unit,
    "user": user,
    "venv": venv,
    "weights": weights,
}
