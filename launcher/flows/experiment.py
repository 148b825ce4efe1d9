"""experiment: each variant is brought up and measured at each point; what figures say of the hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from launcher.bench.contrast import contrasts
from launcher.bench.workload import points_of
from launcher.flows.alone import Names, wanted_of_layout
from launcher.flows.bench import bench_of
from launcher.flows.layout_trials import Place, Trials, builder, trial_of
from launcher.flows.lint import judged
from launcher.flows.tune import Values, changed
from launcher.flows.tune_records import overlay, values_of
from launcher.load.data import Data, roots_of
from launcher.load.experiments import load_of
from launcher.load.layered import overlaid
from launcher.model.bench import Method
from launcher.model.experiment import Asked, Contrast, Experiment, Variant
from launcher.model.measurement import Measurement
from launcher.model.problem import LauncherError
from launcher.model.run import Event
from launcher.model.tune import Trial
from launcher.model.wish import Wanted


@dataclass(frozen=True, slots=True)
class Arm:
    """A variant, and what must be true with it."""

    variant: Variant
    wanted: Wanted
    changes: tuple[str, ...]
    """Words of the engines' command lines that differ from the first variant's."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a variant."""

    arm: Arm
    measured: Mapping[str, Measurement]
    """Point → what was measured there."""
    failed: str = ""
    """Why it did not come up."""

    @property
    def trials(self) -> Mapping[str, Trial]:
        """Point → its figures."""
        return {name: trial_of(made) for name, made in self.measured.items()}


@dataclass(frozen=True, slots=True)
class Told:
    """An experiment that has ended."""

    experiment: Experiment
    seen: tuple[Seen, ...]

    @property
    def contrasts(self) -> tuple[Contrast, ...]:
        """Each variant beside the first one, point by point."""
        points = self.experiment.points
        found = {
            s.arm.variant.id: {p: s.trials.get(p, Trial(failed=s.failed)) for p in points} for s in self.seen
        }
        return tuple(contrasts(self.experiment, found))


def dry(experiment: Experiment, *, data_dir: Path | None, folder: Path) -> tuple[Arm, ...]:
    """All variants on hosts that are made up, of the stack, hardware and model that it is written for.

    InputError where one of them cannot be, or rules refuse it.
    """

    def build(variant: Variant, values: Values) -> Wanted:
        overlay(folder, variant.layout, values)
        names = Names(
            variant.layout, experiment.stack, experiment.hardware, variant.model or experiment.model
        )
        wanted = wanted_of_layout(names, Data((folder, *roots_of(data_dir))))
        judged(wanted, data_dir=data_dir)
        return wanted

    return _arms(experiment, data_dir, build)


def arms_of(experiment: Experiment, place: Place, base: Wanted) -> tuple[Arm, ...]:
    """All variants on an inventory's hosts. InputError as `dry`."""

    def build(variant: Variant, values: Values) -> Wanted:
        own = replace(place, layout=f"{experiment.name}-{variant.id}")
        return builder(own, base, model=variant.model)(values)

    return _arms(experiment, place.data_dir, build)


def _arms(
    experiment: Experiment, data_dir: Path | None, build: Callable[[Variant, Values], Wanted]
) -> tuple[Arm, ...]:
    data = Data(roots_of(data_dir))
    made: list[Arm] = []
    for variant in experiment.variants:
        values = overlaid(values_of(variant.layout, variant.source, data), variant.change)
        wanted = build(variant, values)
        made.append(Arm(variant, wanted, changed(made[0].wanted, wanted) if made else ()))
    return tuple(made)


def conducted(trials: Trials, experiment: Experiment, arms: Sequence[Arm], method: Method) -> Told:
    """Every variant at every point, and then the fleet as its inventory says. LauncherError where it was
    interrupted, hosts are away, or the client fails."""
    return Told(experiment, tuple(_seen(trials, experiment, arm, method) for arm in arms))


def restored(trials: Trials, base: Wanted) -> None:
    """The fleet with its own layout. LauncherError where it does not come up."""
    if fault := trials.bring_up(base):
        raise LauncherError(fault)


def _seen(trials: Trials, experiment: Experiment, arm: Arm, method: Method) -> Seen:
    found: dict[str, Measurement] = {}
    for name, asked in experiment.points.items():
        made = _look(trials, experiment, arm, asked, method)
        if isinstance(made, str):
            return Seen(arm, found, made)
        found[name] = replace(made, variant=arm.variant.id)
        trials.run.listener(Event("finding", f"measured at {name}", subject=arm.variant.id))
    return Seen(arm, found)


def _look(
    trials: Trials, experiment: Experiment, arm: Arm, asked: Asked, method: Method
) -> Measurement | str:
    workload, sla = load_of(asked, Data(trials.place.roots))
    more = trials.common(experiment.repeats)
    bench = bench_of(arm.wanted, workload, sla, method, target=workload.target, **more)
    (point,) = points_of(workload, method)
    return trials.look(arm.wanted, bench, point, variable=True)


def merged(seen: Seen) -> Iterator[Measurement]:
    """What was measured of a variant, points of one load together: what a report shows as one line."""
    by_load: dict[str, Measurement] = {}
    for made in seen.measured.values():
        key = str(replace(made.workload, concurrency=(), prompts=1))
        have = by_load.get(key)
        by_load[key] = replace(have, points=(*have.points, *made.points)) if have else made
    yield from by_load.values()
