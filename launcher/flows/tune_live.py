"""tune on a fleet: each layout is brought up and measured, once; a folder keeps what was found.

Given again it goes on: what is in the folder is not measured anew, and a benchmark that outlived its
controller is picked up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from launcher.bench.keep import document, measurement_of
from launcher.bench.measure import rates, time_ms
from launcher.bench.workload import point_of
from launcher.execute.hands import Hands
from launcher.flows.bench import bench_of, measure
from launcher.flows.bench_run import Bench, Record
from launcher.flows.lint import judged
from launcher.flows.run import Run
from launcher.flows.targets import limit_to
from launcher.flows.tune import Values, begun, hosts_of, walk
from launcher.flows.tune_records import Tuned, overlay, values_of
from launcher.flows.up import Result, up
from launcher.health.hands import look_within_s
from launcher.load import load_from
from launcher.load.choice import Choice
from launcher.load.data import Data, roots_of
from launcher.load.edit import Put, edited
from launcher.load.measurement import read_measurement
from launcher.load.sla import read_workload
from launcher.model.bench import Method, Point
from launcher.model.measurement import Measurement
from launcher.model.plan import Plan
from launcher.model.problem import Exit, LauncherError, Problem
from launcher.model.run import Event, RunRecord
from launcher.model.sla import Sla, Workload
from launcher.model.tune import Decision, FigureName, Trial, Tune, TuneStep
from launcher.model.wish import Wanted
from launcher.resolve import resolve


@dataclass(frozen=True, slots=True)
class Place:
    """Where it is kept what was found, and the layouts come from."""

    folder: Path
    layout: str
    """The name of the layouts on the way, and of the last."""
    inventory: Path
    data_dir: Path | None

    @property
    def roots(self) -> tuple[Path, ...]:
        """Of all data: the layout on the way lies over the user's own, and that over what is shipped."""
        return (self.folder / "trial", *roots_of(self.data_dir))

    def measured(self, key: str) -> Path:
        """What was measured, by the job that did it."""
        return self.folder / "measured" / f"{key}.json"

    def failed(self, key: str) -> Path:
        """Why a layout did not come up."""
        return self.folder / "measured" / f"{key}.failed"


@dataclass(frozen=True, slots=True)
class Terms:
    """By what it is measured and held against."""

    tune: Tune
    workload: Workload
    sla: Sla | None
    method: Method


def builder(place: Place, base: Wanted) -> Callable[[Values], Wanted]:
    """Makes what must be true of an inventory with another layout, and refuses what rules refuse.

    Secrets are those of `base`: they were opened once.
    """

    def build(values: Values) -> Wanted:
        overlay(place.folder / "trial", place.layout, values)
        data = Data(place.roots)
        text = data.text(place.inventory)
        change = Put(("layout",), place.layout)
        data.give(place.inventory, edited(text, str(place.inventory), (change,)).encode())
        wish = load_from(data, place.inventory)
        wanted = resolve(replace(wish, secrets=base.wish.secrets))
        judged(wanted, data_dir=place.data_dir)
        return wanted

    return build


@dataclass(frozen=True, slots=True)
class Live:
    """One tune on a fleet, whose hosts the caller has locked."""

    fleet: Hands
    run: Run
    record: Record
    about: RunRecord
    place: Place
    terms: Terms

    def look(self, wanted: Wanted, step: TuneStep, taken: tuple[str, ...]) -> Trial:
        """What is known of a layout, or else what it does: up with it, and a load on it.

        LauncherError where the fault is not the step's, and where it was interrupted.
        """
        bench, point = self._bench(wanted, step)
        key = bench.job(point, bench.seed)
        if self.place.measured(key).is_file():
            return trial_of(read_measurement(self.place.measured(key)), self.terms.tune)
        if self.place.failed(key).is_file():
            return Trial(failed=self.place.failed(key).read_text(encoding="utf-8"))
        fault = self.bring_up(wanted)
        if fault and step.id not in taken:
            raise LauncherError(fault)
        if fault:
            keep(self.place.failed(key), fault.what)
            return Trial(failed=fault.what)
        return self._measured(wanted, bench, point, key)

    def bring_up(self, wanted: Wanted) -> Problem | None:
        """The fleet with this layout; why it does not serve with it."""
        limit = limit_to((), wanted.steps, wanted.deployment)
        result = up(self.fleet, wanted, limit, self._approved, self.run)
        if result.exit_code is Exit.INTERRUPTED:
            raise InterruptedTuneError
        fault = _fault(result)
        if fault:
            unreached = self.fleet.ask(dict.fromkeys(wanted.steps, ()), within_s=look_within_s)
            if lost := [told for told in unreached.values() if isinstance(told, Problem)]:
                raise LauncherError(*lost)
        return fault

    def _approved(self, plan: Plan) -> bool:
        """The whole path was: each layout of it is one that the path shows."""
        if plan.unreached:
            raise LauncherError(*plan.unreached.values())
        return True

    def _bench(self, wanted: Wanted, step: TuneStep) -> tuple[Bench, Point]:
        tune, method = self.terms.tune, self.terms.method
        workload, sla = self.terms.workload, self.terms.sla
        if step.workload:
            workload, _ = read_workload(Choice(step.workload, step.source), Data(self.place.roots))
        more = {"seed": 1, "repeats": tune.repeats, "salt": self.run.id}
        bench = bench_of(wanted, workload, sla, method, target=tune.pool, **more)
        at_once = tune.requests_per_host * hosts_of(wanted, tune)
        return bench, point_of(replace(workload, request_rate=None), method, concurrency=at_once)

    def _measured(self, wanted: Wanted, bench: Bench, point: Point, key: str) -> Trial:
        found = measure(self.fleet, bench, point, self.record)
        if self.record.interrupted():
            raise InterruptedTuneError
        made = measurement_of(
            wanted,
            self.about,
            target=bench.target,
            workload=bench.workload,
            sla=bench.sla,
            method=bench.method,
            points=(found,),
            seed=bench.seed,
            repeats=bench.repeats,
        )
        keep(self.place.measured(key), document(made))
        return trial_of(made, self.terms.tune)


class InterruptedTuneError(LauncherError):
    """The user pressed ctrl-C; what was found until then is kept."""

    exit_code = Exit.INTERRUPTED


def tuned(live: Live, base: Wanted, told: Callable[[Decision], None]) -> Tuned:
    """The whole path, and the fleet as it was best. LauncherError as `Live.look`."""
    tune, place = live.terms.tune, live.place
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
        live.run.listener(Event("finding", f"{decision.outcome}: {decision.reason}", subject=decision.step))
        way = now
    if fault := live.bring_up(way.wanted):
        raise LauncherError(fault)
    return Tuned(tune, name, start, tuple(decisions), way, live.terms.sla)


def trial_of(made: Measurement, tune: Tune) -> Trial:
    """The figures of each run at its point, and which limits they keep."""
    (point,) = made.points
    times: Mapping[FigureName, tuple[float | None, ...]] = {
        "tokens_per_s_per_gpu": tuple(next(rates(r, made)).value for r in point.results),
        "ttft_ms": tuple(time_ms(r, "ttft_ms", "mean") for r in point.results),
        "tpot_ms": tuple(time_ms(r, "tpot_ms", "mean") for r in point.results),
    }
    known: dict[FigureName, tuple[float, ...]] = {}
    for name, values in times.items():
        told = tuple(v for v in values if v is not None)
        if len(told) == len(values):
            known[name] = told
    limits = {j.name: j.verdict for j in point.judgements}
    at_once = point.point.concurrency or 0
    return Trial(known, at_once, limits, point.doubts, known_from=f"run {made.run}")


def _fault(result: Result) -> Problem | None:
    return result.problems[0] if result.problems else None


def keep(path: Path, text: str) -> None:
    """All of it or nothing, whenever this process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
