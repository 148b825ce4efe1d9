"""PoolShape: what of each engine pool decides its memory and speed; knows neither formulas nor hosts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from launcher.fit import Shape
from launcher.flows.launches import launches_of
from launcher.lint.fitting import shape
from launcher.lint.quantities import QUANTITIES
from launcher.lint.reading import Reading
from launcher.lint.values import UntoldError
from launcher.model.architecture import Architecture
from launcher.model.knowledge import Knowledge
from launcher.model.launch import Launch
from launcher.model.problem import InputError, Problem
from launcher.model.profile import EnginePool, Hardware
from launcher.model.wish import Wanted


@dataclass(frozen=True, slots=True)
class PoolShape:
    """A pool's first launch, as its GPUs see it: all instances of a pool are alike."""

    pool: EnginePool
    reading: Reading
    shape: Shape
    architecture: Architecture
    hardware: Hardware

    @property
    def launch(self) -> Launch:
        """The launch that was read."""
        return self.reading.launch


def pool_shapes(wanted: Wanted, knowledge: Knowledge) -> Iterator[PoolShape]:
    """One of each engine pool. InputError where something that they depend on is not known."""
    pools = {i.name: i.pool for i in wanted.deployment.instances} if wanted.deployment else {}
    first: dict[EnginePool, Launch] = {}
    for launch in launches_of(wanted):
        first.setdefault(pools[launch.instance], launch)
    for pool, launch in first.items():
        yield shape_of(pool, launch, knowledge)


def shape_of(pool: EnginePool, launch: Launch, knowledge: Knowledge) -> PoolShape:
    """Of one launch. InputError where something that it depends on is not known."""
    reading = Reading(launch, knowledge, QUANTITIES)
    try:
        return PoolShape(pool, reading, shape(reading), reading.architecture(), reading.hardware())
    except UntoldError as error:
        what = f"memory of {launch.name} cannot be worked out: {error.unknown.reason} is not known"
        do = "add it to configs/: models have `architecture`, hardware has `overheads`"
        raise InputError(Problem(what, where=launch.source, do=do)) from None
