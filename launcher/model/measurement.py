"""Measurement: all that one `bench` measured, and on what; knows no host and no file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Ge

from launcher.model.bench import Axis, Measured, Method, Verdict
from launcher.model.profile import EnginePool, Style
from launcher.model.sla import Sla, Workload

FORMAT = 2
"""Of the JSON; it rises when what is there already changes its meaning or goes."""
DERIVED = "summary"
"""Of a point's JSON: what follows from its other fields, for other programs; nothing reads it back."""


@dataclass(frozen=True, slots=True)
class Seat:
    """What one host does for an instance."""

    host: str
    unit: str
    ranks: Mapping[str, tuple[int, ...]]
    """Data-parallel rank → its GPUs; none where the hardware has none."""
    command: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Served:
    """One instance, as the inventory of that time laid it out."""

    name: str
    pool: EnginePool
    style: Style
    tensor_parallel: Annotated[int, Ge(1)]
    data_parallel: Annotated[int, Ge(1)]
    seats: tuple[Seat, ...]

    @property
    def gpus(self) -> int:
        """Of all its hosts."""
        return sum(len(gpus) for seat in self.seats for gpus in seat.ranks.values())

    @property
    def shape(self) -> str:
        """`2 hosts, TP2 × DP8, 16 GPUs`: what must be equal where two are compared."""
        hosts = f"{len(self.seats)} host{'s' if len(self.seats) > 1 else ''}"
        return f"{hosts}, TP{self.tensor_parallel} × DP{self.data_parallel}, {self.gpus or 'no'} GPUs"


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to."""

    axis: Axis
    highest: float | None = None
    """That keeps the service level; None: none does."""
    confirmed: bool = False
    """By a longer run."""
    next_up: float | None = None
    """The lowest that did not pass."""
    next_verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """`bench.json` of a run's folder, and a baseline."""

    format: int
    run: str
    command: tuple[str, ...]
    """Of the launcher."""
    who: str
    why: str
    started: str
    ended: str
    """Of its last point; what was interrupted has fewer points than its workload."""
    cluster: str
    inventory: str
    layout: str
    hardware: str
    model: str
    versions: Mapping[str, str]
    """The launcher's and Python's, the stack's name and all versions that it pins."""
    data_digest: str
    """sha256 of all files that were read."""
    target: str
    through: str
    url: str
    client_host: str
    instances: tuple[Served, ...]
    """Those that got the load."""
    routers: tuple[str, ...]
    """Their hosts, where the load went through them."""
    router_command: tuple[str, ...]
    workload: Workload
    """With what options changed of it."""
    method: Method
    seed: int
    repeats: int
    points: tuple[Measured, ...]
    sla: Sla | None = None
    search: Found | None = field(default=None)
    variant: str = ""
    """Of an experiment: which of its settings this was."""

    @property
    def label(self) -> str:
        """What tells it from others in one report."""
        return f"{self.run} {self.variant}".rstrip()

    @property
    def gpus(self) -> Mapping[EnginePool, int]:
        """Pool → its GPUs; 0 where the hardware has none."""
        found: dict[EnginePool, int] = {}
        for served in self.instances:
            found[served.pool] = found.get(served.pool, 0) + served.gpus
        return found

    @property
    def name(self) -> str:
        """Whom the load went to."""
        return self.target

    def count(self, pool: EnginePool) -> int:
        """Instances of a pool."""
        return sum(i.pool == pool for i in self.instances)

    @property
    def topology(self) -> Mapping[str, str]:
        """What must be the same where figures are compared, but for versions and settings: word → value."""
        shapes: dict[str, list[str]] = {}
        for served in self.instances:
            shapes.setdefault(served.pool, []).append(served.shape)
        pools = {
            pool: f"{len(own)} × ({'; '.join(dict.fromkeys(own))})" for pool, own in sorted(shapes.items())
        }
        routed = {"routers": str(len(self.routers))} if self.routers else {}
        return {"hardware": self.hardware, "model": self.model, **pools, **routed}
