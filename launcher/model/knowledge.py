"""Knowledge: rules, history and snapshots of the releases at hand; knows no launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from launcher.model.history import History
from launcher.model.rule import Rule
from launcher.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What configs/ knows of engines, whichever of them an inventory has chosen."""

    history: History
    rules: tuple[Rule, ...] = ()
    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)
    """Release → what it accepts."""
