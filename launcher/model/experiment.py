"""Experiment, Variant, Asked, Contrast: a load under several settings, what is expected; knows no host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Lt, MinLen

from launcher.model.tune import Edit, Word

DecidingFigure: TypeAlias = Literal["tokens_per_s_per_gpu", "ttft_ms", "tpot_ms"]
"""As a tune's `FigureName`."""
Finding: TypeAlias = Literal["as expected", "not as expected", "nothing expected", "cannot tell"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A point under which all variants are measured: a workload, and what is different of it here."""

    workload: str
    concurrency: Annotated[int, Ge(1)] | None = None
    """None: the workload's highest."""
    input_tokens: Annotated[int, Ge(1)] | None = None
    output_tokens: Annotated[int, Ge(1)] | None = None
    prompts: Annotated[int, Ge(1)] | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the settings: a layout, with a change of its own, and maybe another model."""

    id: str
    layout: str
    change: Edit = field(default_factory=dict)
    """A part of a layout file, laid over the layout."""
    model: str = ""
    """Another one than the inventory's."""
    expect: Mapping[str, Word] = field(default_factory=dict)
    """Point → what the figure is to be beside the first variant's; a point that is not here: nobody says."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Experiment:
    """configs/experiments/<name>.yaml."""

    name: str
    about: str
    hypothesis: str
    known_from: str
    figure: DecidingFigure
    stack: str
    """Whose release the variants are written for, and held against where no host is asked."""
    hardware: str
    model: str
    repeats: Annotated[int, Ge(1)]
    noise: Annotated[float, Ge(0), Lt(1)]
    """Share by which figures must differ; more where the runs themselves lie further apart."""
    points: Annotated[Mapping[str, Asked], MinLen(1)]
    variants: Annotated[tuple[Variant, ...], MinLen(1)]
    """The first is what all others are held against; alone it is held against its service level."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Contrast:
    """A variant beside the first one at a point."""

    point: str
    variant: str
    finding: Finding
    reason: str
    share: float | None = None
    """By which the figure is better; negative: worse. None where it cannot be told."""
