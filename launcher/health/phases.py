"""Progress: how far the start of one process has come, by its log and its budget; knows no transport."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from launcher.health.errors import Line
from launcher.model.deployment import Process
from launcher.model.profile import Phase


@dataclass(frozen=True, slots=True)
class Progress:
    """One process on its way from started to ready.

    The first phase begins with the process itself, each later one with the first line that its pattern
    finds. A process never goes back: engines print lines of earlier phases again when they re-import.
    """

    process: Process
    phase: int
    since_s: float
    """When the phase was first seen to have begun, by the controller's monotonic clock."""
    last: str = ""
    """Its last log line that is not blank."""
    ready: bool = False

    @property
    def answers(self) -> bool:
        """Whether it has an API endpoint; a headless process shows only the phases up to its own work."""
        return any(e.name == "api" for e in self.process.endpoints)


def advance(progress: Progress, lines: Iterable[Line], phases: tuple[Phase, ...], now_s: float) -> Progress:
    """The progress after these further lines of its log."""
    reached, last = progress.phase, progress.last
    patterns = [re.compile(p.pattern) for p in phases]
    for line in lines:
        last = line.text.strip() or last
        later = range(len(phases) - 1, reached, -1)
        reached = next((i for i in later if patterns[i].search(line.text)), reached)
    since_s = now_s if reached != progress.phase else progress.since_s
    return replace(progress, phase=reached, since_s=since_s, last=last)


def budget_s(progress: Progress, phases: tuple[Phase, ...]) -> int:
    """Seconds that its present phase may take; of a headless process, that and all it does not show."""
    rest = phases[progress.phase :]
    return rest[0].within_s if progress.answers else sum(p.within_s for p in rest)


def behind(members: Iterable[Progress], phases: tuple[Phase, ...], now_s: float) -> Progress | None:
    """Once any budget is exceeded: the process that the others wait for, the least far and longest there.

    The one whose budget ran out is often only waiting for the slowest peer.
    """
    waiting = [m for m in members if not m.ready]
    if not any(now_s - m.since_s > budget_s(m, phases) for m in waiting):
        return None
    return min(waiting, key=lambda m: (m.phase, m.since_s))
