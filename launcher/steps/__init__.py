"""KINDS: the kinds of desired state a role may use, one module each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from launcher.model.facts import Facts, Probe
from launcher.model.plan import Draft
from launcher.steps import (
    absent,
    boot,
    built,
    command,
    file,
    folder,
    link,
    package,
    purged,
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
    "built": built,
    "command": command,
    "file": file,
    "folder": folder,
    "link": link,
    "package": package,
    "purged": purged,
    "sysctl": sysctl,
    "turns": turns,
    "unit": unit,
    "user": user,
    "venv": venv,
    "weights": weights,
}
Undone: TypeAlias = Callable[[Any, Facts], tuple[Draft, ...]]
"""What takes a step's work away again; () where nothing of it is there."""
UNDONE: Mapping[str, Undone] = {
    "boot": boot.undone,
    "built": built.undone,
    "file": file.undone,
    "link": link.undone,
    "package": package.undone,
    "sysctl": sysctl.undone,
    "turns": turns.undone,
    "unit": unit.undone,
}
"""The others leave what they made: data of ours (folders, environments, weights), accounts that files may
belong to, and what they took away from a host, which nobody knows any more."""
