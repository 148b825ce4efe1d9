"""Run: what a flow that may change hosts knows of the run it is part of; knows no journal and no screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from launcher.model.run import Listener
from launcher.wait import CLOCK, Clock

# health is imported where something is to serve: a tenth of a run that only provisions would go into it
if TYPE_CHECKING:
    from launcher.health.ready import SaveLog


@dataclass(frozen=True, slots=True)
class Run:
    """What a run tells of itself, and how it can be stopped."""

    id: str
    """Also the name of its folder."""
    listener: Listener
    save_log: SaveLog
    interrupted: Callable[[], bool]
    who: str
    when: str
    """UTC, ISO 8601, of its beginning."""
    why: str = ""
    clock: Clock = CLOCK
    """By which it waits."""
    flow: str = ""
    """The command that it is."""
