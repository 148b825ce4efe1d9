"""Point, Result, Judgement: a load, what one run under it measured, and what that means; knows no host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol, TypeAlias

from annotated_types import Ge, Gt, Lt, MinLen

from launcher.model.deployment import Instance
from launcher.model.profile import EnginePool
from launcher.model.sla import LimitName, Statistic
from launcher.model.telemetry import Track

Verdict: TypeAlias = Literal["PASS", "FAIL", "CANNOT TELL"]
WORST_FIRST: tuple[Verdict, ...] = ("FAIL", "CANNOT TELL", "PASS")
Axis: TypeAlias = Literal["concurrency", "rate"]


@dataclass(frozen=True, slots=True)
class Gate:
    """From when on a figure is worse than a baseline's."""

    worse_by: Mapping[LimitName, Annotated[float, Ge(0)]]
    """Mean of a figure → share, beyond what runs differ by among themselves."""
    repeats: Annotated[int, Ge(2)] = 3
    """Runs at each point of a baseline that a rollout measures itself."""


@dataclass(frozen=True, slots=True)
class Method:
    """configs/bench.yaml: how it is measured, and when there is no verdict."""

    percentiles: Annotated[tuple[Annotated[int, Gt(0), Lt(100)], ...], MinLen(1)]
    warm_up_rounds: Annotated[int, Ge(1)]
    """Prompts of the warm-up, for each request at once."""
    least_rounds: Annotated[int, Ge(1)]
    """A run has so many prompts for each request at once, if the workload says less."""
    least_samples: Annotated[int, Ge(1)]
    """Completed requests of a run, for its mean."""
    beyond_percentile: Annotated[int, Ge(1)]
    """Completed requests of a run beyond a percentile of it."""
    client_cpu_percent: Annotated[float, Gt(0)]
    """Of one core, over the run; from here on the client is what was measured."""
    rate_kept: Annotated[float, Gt(0)]
    """Share of the asked rate that must have got through."""
    bound_reached: Annotated[float, Gt(0)]
    """Share of the concurrency that is under way on average where it is what keeps the rate down."""
    queue_empty_s: Annotated[float, Gt(0)]
    """Engines whose requests wait shorter than this on average have no queue."""
    prompt_off: Annotated[float, Gt(0)]
    """Share by which prompts may be longer or shorter, by the engines' count, than they were asked for."""
    cached_share: Annotated[float, Gt(0)]
    """Share of prompt tokens that prefix caches may answer."""
    search_points: Annotated[int, Ge(2)]
    """Points of a search, those of its confirmation included."""
    search_within: Annotated[float, Gt(0)]
    """A search ends when the next value up, this share away, fails."""
    search_down: Annotated[float, Gt(1)]
    """A search for a rate gives up so many times below the one it began with."""
    confirm_times: Annotated[int, Ge(2)]
    """The confirming run of a search has so many times the prompts."""
    settle_s: Annotated[float, Ge(0)]
    """Until engines have published the counters of their last answers."""
    within_s: Annotated[int, Ge(1)]
    """For one job; what takes longer is ended."""
    picked_up_within_s: Annotated[int, Ge(0)]
    """A run that nobody took the result of is measured anew after so long."""
    environment: Mapping[str, str]
    """Variables of the client."""
    gate: Gate


@dataclass(frozen=True, slots=True)
class Point:
    """One load of a workload."""

    prompts: int
    concurrency: int | None = None
    """Requests at once at most; None: no bound."""
    rate: float | None = None
    """Requests a second; None: as fast as concurrency lets."""

    def __str__(self) -> str:
        words = [f"{self.rate:g} requests/s"] if self.rate else []
        words += [f"concurrency {self.concurrency}"] if self.concurrency else []
        return ", ".join(words) or "all at once"


class Sides(Protocol):
    """Who answers a load: what figures per GPU or instance are divided by."""

    @property
    def name(self) -> str:
        """`service`, or an instance."""

    @property
    def gpus(self) -> Mapping[EnginePool, int]:
        """Pool → its GPUs; 0 where the hardware has none."""

    def count(self, pool: EnginePool) -> int:
        """Instances of a pool."""


@dataclass(frozen=True, slots=True)
class Target:
    """Whom the load goes to, from which host, and whose counters tell of it."""

    name: str
    """`service`, or an instance."""
    url: str
    host: str
    """Where the client runs."""
    through: str
    """What `url` is, in words."""
    instances: tuple[Instance, ...]

    @property
    def gpus(self) -> Mapping[EnginePool, int]:
        """Pool → its GPUs in `instances`; 0 where the hardware has none."""
        found: dict[EnginePool, int] = {}
        for instance in self.instances:
            ranks = (rank for process in instance.processes for rank in process.ranks)
            found[instance.pool] = found.get(instance.pool, 0) + sum(len(rank.gpus) for rank in ranks)
        return found

    def count(self, pool: EnginePool) -> int:
        """Instances of a pool."""
        return sum(i.pool == pool for i in self.instances)


Counters: TypeAlias = Mapping[str, Mapping[str, float]]
"""Pool → our word for a counter → by how much it grew during a run."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one run of the client at a point measured."""

    seed: int
    asked: int
    """Prompts it was to send."""
    figures: Mapping[str, float]
    """Numbers of `vllm bench serve`, by its own names."""
    client_cpu_percent: float
    """Of one core, while it measured."""
    counters: Counters
    ranks: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    """Instance → data-parallel rank → our word for a counter → by how much it grew."""
    silent: tuple[str, ...] = ()
    """Instances whose counters could not be read, before or after."""
    restarted: tuple[str, ...] = ()
    """Instances whose counters fell: they started anew meanwhile."""
    date: str = ""
    """When it ended, by the client's clock."""
    path: str = ""
    """Where its JSON is kept on this machine."""
    words: tuple[str, ...] = ()
    """The client's command line."""
    tracks: tuple[Track, ...] = ()
    """What exporters told of GPUs and NICs meanwhile."""
    untold: tuple[str, ...] = ()
    """Of what they told nothing, and why."""

    @property
    def completed(self) -> int:
        """Requests that were answered."""
        return int(self.figures.get("completed", 0))


@dataclass(frozen=True, slots=True)
class Judgement:
    """One limit of a service level, held against the runs at a point."""

    limit: LimitName
    of: Statistic
    bound: float
    at_most: bool
    verdict: Verdict
    value: float | None = None
    """The lower median of the runs; None where there is no such figure."""
    spread: float = 0.0
    """Half of the distance between the runs' lowest and highest."""
    samples: tuple[int, ...] = ()
    """Completed requests of each run."""
    why: str = ""
    """CANNOT TELL: the reason."""

    @property
    def name(self) -> str:
        """`ttft_ms mean`."""
        return f"{self.limit} {self.of}"

    @property
    def margin(self) -> float | None:
        """Room to the bound as a share of it; negative: beyond it."""
        if self.value is None:
            return None
        room = self.bound - self.value if self.at_most else self.value - self.bound
        return room / self.bound


@dataclass(frozen=True, slots=True)
class Measured:
    """A point, its runs, and what is to be said of them."""

    point: Point
    results: tuple[Result, ...]
    doubts: tuple[str, ...] = ()
    """Why the figures do not tell what they seem to."""
    judgements: tuple[Judgement, ...] = ()
    notes: tuple[str, ...] = field(default=())
    """What is worth knowing, and takes nothing away."""

    @property
    def verdict(self) -> Verdict:
        """FAIL before CANNOT TELL before PASS; without limits, whether the figures can be trusted."""
        verdicts = {j.verdict for j in self.judgements}
        if "FAIL" in verdicts:
            return "FAIL"
        return "CANNOT TELL" if self.doubts or "CANNOT TELL" in verdicts else "PASS"


def worst(verdicts: Iterable[Verdict], *, of_none: Verdict = "PASS") -> Verdict:
    """The verdict on all of them: FAIL before CANNOT TELL before PASS."""
    found = set(verdicts)
    return next((v for v in WORST_FIRST if v in found), of_none)
