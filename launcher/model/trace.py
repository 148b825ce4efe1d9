"""Names, Capture, TraceEvent, RankTime: a profiler's trace and what it says; knows no file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt, MinLen


@dataclass(frozen=True, slots=True)
class Names:
    """What names of a trace mean."""

    patterns: Annotated[tuple[str, ...], MinLen(1)]
    """Regular expressions, letters of any case."""
    known_from: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Capture:
    """configs/profile.yaml."""

    most_s: Annotated[float, Gt(0)]
    """Of one capture."""
    stop_within_s: Annotated[float, Gt(0)]
    """For an engine to write what it has."""
    largest_mib: Annotated[int, Ge(1)]
    piece_kib: Annotated[int, Ge(1)]
    gpu: Annotated[tuple[str, ...], MinLen(1)]
    """Categories of events that are work of a GPU."""
    cpu: Annotated[tuple[str, ...], MinLen(1)]
    """The same of a CPU: what is work where a trace has no GPU's."""
    families: Annotated[Mapping[str, Names], MinLen(1)]
    scopes: Mapping[str, Names]
    source: str = ""


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """Something that took time."""

    lane: tuple[str, str]
    """Process and thread, or GPU and stream: events of one lane lie in each other or apart."""
    category: str
    name: str
    begun_us: float
    lasted_us: float

    @property
    def ended_us(self) -> float:
        """When it was over."""
        return self.begun_us + self.lasted_us


@dataclass(frozen=True, slots=True)
class RankTime:
    """Where one process's time went."""

    label: str
    of: str
    """`GPU` or `CPU`: whose work it is."""
    window_ms: float
    """From its first event to its last."""
    idle_ms: float
    """Of it, without any work."""
    families_ms: Mapping[str, float]
    """Self time, each moment of a lane once; of lanes beside each other it may be more than the window."""
    scopes_ms: Mapping[str, float]
    top: tuple[tuple[str, float, int], ...]
    """Name, self time in ms and count of what took most."""

    def share(self, ms: float) -> float:
        """Of the window."""
        return ms / self.window_ms if self.window_ms else 0.0
