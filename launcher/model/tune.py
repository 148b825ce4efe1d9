"""Tune, TuneStep, Trial, Decision: settings to try in turn, and what came of each; knows no host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Lt, MinLen

from launcher.model.bench import Verdict
from launcher.model.profile import EnginePool
from launcher.model.values import Json

FigureName: TypeAlias = Literal["tokens_per_s_per_gpu", "ttft_ms", "tpot_ms", "requests_at_once"]
"""Tokens a second over the pool's GPUs (prefill: prompts and answers; decode: answers; over instances where
there are no GPUs), means of TTFT and TPOT, and how many requests at once keep the service level."""
Outcome: TypeAlias = Literal["kept", "reverted", "skipped", "undecided"]
Word: TypeAlias = Literal["better", "worse"]
Edit: TypeAlias = Mapping[str, Json]
"""A part of a layout file, laid over another one: mappings merge by key, all else replaces."""
FILL = "fill"
"""`data_parallel: fill`: as many ranks as the instance's GPUs make."""


@dataclass(frozen=True, slots=True)
class TuneStep:
    """One hypothesis, what it changes of a layout, and what decides."""

    id: str
    hypothesis: str
    known_from: str
    change: Edit = field(default_factory=dict)
    figure: FigureName = "tokens_per_s_per_gpu"
    releases: str = ""
    """PEP 440 specifier of the engine's releases that it is for; empty: all."""
    least_hosts: Annotated[int, Ge(1)] = 1
    """Hosts of an instance from which on it is worth a try."""
    workload: str = ""
    """Another load than the tune's."""
    during: Edit = field(default_factory=dict)
    """Laid over both layouts while this step is measured, and not kept."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Tune:
    """configs/tunes/<name>.yaml."""

    name: str
    about: str
    pool: EnginePool
    workload: str
    requests_per_host: Annotated[int, Ge(1)]
    """Requests at once under which a layout is measured, for each host of an instance."""
    repeats: Annotated[int, Ge(1)]
    noise: Annotated[float, Ge(0), Lt(1)]
    """Share by which a figure must be better; more where the runs themselves lie further apart."""
    steps: Annotated[tuple[TuneStep, ...], MinLen(1)]
    source: str = ""

    def named(self, step: str) -> TuneStep:
        """The step of that id; StopIteration where there is none."""
        return next(s for s in self.steps if s.id == step)


@dataclass(frozen=True, slots=True)
class Trial:
    """What is known of one layout under one load."""

    figures: Mapping[FigureName, tuple[float, ...]] = field(default_factory=dict)
    """Each run's; empty: nobody gives any."""
    requests_at_once: Annotated[int, Ge(0)] = 0
    limits: Mapping[str, Verdict] = field(default_factory=dict)
    """Limit of the service level, in words → whether it is kept."""
    doubts: tuple[str, ...] = ()
    """Why the figures do not tell what they seem to."""
    failed: str = ""
    """Why it did not come up."""
    word: Word | None = None
    """What its source says where it gives no figures."""
    known_from: str = ""

    @property
    def told(self) -> bool:
        """Does it say anything at all?"""
        return bool(self.figures or self.failed or self.word)


@dataclass(frozen=True, slots=True)
class RecordedTrial:
    """What somebody measured, or said, of a layout."""

    known_from: str = ""
    point: str = ""
    """Name in configs/points, whose figures, load and source these are."""
    figures: Mapping[FigureName, tuple[float, ...]] = field(default_factory=dict)
    requests_at_once: Annotated[int, Ge(0)] = 0
    word: Word | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Records:
    """configs/records/<name>.yaml: what somebody found along a tune's path, and on what."""

    name: str
    about: str
    tune: str
    layout: str
    """What it began with."""
    stack: str
    hardware: str
    model: str
    start: RecordedTrial
    """Of the layout to begin with."""
    steps: Mapping[str, RecordedTrial]
    """Step of the tune → what it was with that step, over those that were kept before."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of a step."""

    step: str
    outcome: Outcome
    reason: str
    changes: tuple[str, ...] = ()
    """Words of the engines' command lines that differ: `+ --x 1`, `- --y`."""
    before: Trial | None = None
    after: Trial | None = None
