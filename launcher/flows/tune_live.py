"""tune on a fleet: the path, with each of its layouts brought up and measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from launcher.bench.workload import point_of
from launcher.flows.bench import bench_of
from launcher.flows.bench_run import Bench
from launcher.flows.layout_trials import Trials, builder, trial_of
from launcher.flows.tune import begun, hosts_of, walk
from launcher.flows.tune_records import Tuned, values_of
from launcher.load.choice import Choice
from launcher.load.data import Data, roots_of
from launcher.load.sla import read_workload
from launcher.model.bench import Method, Point
from launcher.model.problem import LauncherError
from launcher.model.run import Event
from launcher.model.sla import Sla, Workload
from launcher.model.tune import Decision, Trial, Tune, TuneStep
from launcher.model.wish import Wanted


@dataclass(frozen=True, slots=True)
class Terms:
    """By what it is measured and held against."""

    tune: Tune
    workload: Workload
    sla: Sla | None
    method: Method


@dataclass(frozen=True, slots=True)
class Live:
    """One tune on a fleet."""

    trials: Trials
    terms: Terms

    def look(self, wanted: Wanted, step: TuneStep, taken: tuple[str, ...]) -> Trial:
        """What is known of a layout, or found by measuring.

        LauncherError where the fault is not the step's, and where it was interrupted.
        """
        bench, point = self._bench(wanted, step)
        found = self.trials.look(wanted, bench, point, variable=step.id in taken)
        return Trial(failed=found) if isinstance(found, str) else trial_of(found)

    def _bench(self, wanted: Wanted, step: TuneStep) -> tuple[Bench, Point]:
        tune, method = self.terms.tune, self.terms.method
        workload, sla = self.terms.workload, self.terms.sla
        if step.workload:
            workload, _ = read_workload(Choice(step.workload, step.source), Data(self.trials.place.roots))
        more = self.trials.common(tune.repeats)
        bench = bench_of(wanted, workload, sla, method, target=tune.pool, **more)
        at_once = tune.requests_per_host * hosts_of(wanted, tune)
        return bench, point_of(replace(workload, request_rate=None), method, concurrency=at_once)


def tuned(live: Live, base: Wanted, told: Callable[[Decision], None]) -> Tuned:
    """The whole path, and the fleet as it was best. LauncherError as `Live.look`."""
    tune, place = live.terms.tune, live.trials.place
    name = base.wish.inventory.layout
    build = builder(place, base)
    values = values_of(name, place.inventory.name, Data(roots_of(place.data_dir)))
    way = begun(tune, values, build)
    load = replace(tune.steps[0], id="start", workload="", during={})
    start = live.look(way.wanted, load, ())
    decisions: list[Decision] = []
    for decision, now in walk(tune, way, build, live.look):
        decisions.append(decision)
        told(decision)
        live.trials.run.listener(
            Event("finding", f"{decision.outcome}: {decision.reason}", subject=decision.step)
        )
        way = now
    if fault := live.trials.bring_up(way.wanted):
        raise LauncherError(fault)
    return Tuned(tune, name, start, tuple(decisions), way, live.terms.sla)
