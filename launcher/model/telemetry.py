"""Telemetry, Track: what exporters on hosts are asked for during a run, and what they told; knows no host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Gt, MinLen

ExporterName: TypeAlias = Literal["gpu", "host"]
"""Whose port the inventory knows: `monitoring.gpu_port`, `monitoring.host_port`."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One thing that an exporter tells of each device."""

    metric: str
    """Its Prometheus name."""
    unit: str
    counter: bool = False
    """It only rises: what is told is its growth a second."""


@dataclass(frozen=True, slots=True)
class Exporter:
    """A program on hosts that answers `/metrics`."""

    device: str
    """The label that tells one device from another."""
    series: Annotated[Mapping[str, Metric], MinLen(1)]
    """Our word → metric."""


@dataclass(frozen=True, slots=True)
class Telemetry:
    """configs/telemetry.yaml."""

    every_s: Annotated[float, Gt(0)]
    """Between two looks."""
    most_looks: Annotated[int, Ge(4)]
    """With more, every second one is dropped, and looks are twice as far apart from then on."""
    exporters: Mapping[ExporterName, Exporter]


@dataclass(frozen=True, slots=True)
class Track:
    """One metric of one device over a run."""

    host: str
    series: str
    device: str
    """Empty: the host as a whole."""
    unit: str
    before: float | None
    """Just before the first request; None: for what is told as growth a second."""
    after: float | None
    values: tuple[float, ...]
    """During the run, in the order of time."""

    @property
    def mean(self) -> float | None:
        """Over the run; None where it was too short for a look."""
        return sum(self.values) / len(self.values) if self.values else None

    @property
    def most(self) -> float | None:
        """The highest."""
        return max(self.values, default=None)
