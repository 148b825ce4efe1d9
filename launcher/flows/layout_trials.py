"""A layout on a fleet: brought up and measured, once; a folder keeps what was found.

Given again it goes on: what is in the folder is not measured anew, and a benchmark that outlived its
controller is picked up.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from launcher.bench.keep import document
from launcher.bench.measure import rates, time_ms
from launcher.execute.hands import Hands
from launcher.flows.bench import measure, measurement
from launcher.flows.bench_run import Bench, Record
from launcher.flows.lint import judged
from launcher.flows.preflight import Preflight, Report
from launcher.flows.tune import Values
from launcher.flows.tune_records import overlay
from launcher.flows.up import up
from launcher.health.hands import look_within_s
from launcher.load import load_from
from launcher.load.bench import read_telemetry
from launcher.load.data import Data, roots_of
from launcher.load.edit import Put, edited
from launcher.load.measurement import read_measurement
from launcher.model.bench import Measured, Point
from launcher.model.measurement import Measurement
from launcher.model.problem import Exit, InputError, LauncherError, Problem
from launcher.model.run import RunRecord
from launcher.model.tune import FigureName, Trial
from launcher.model.wish import Wanted
from launcher.record.whole import write_whole
from launcher.resolve import resolve
from launcher.rollout.planning import Goal, Proposal
from launcher.rollout.run import Run
from launcher.rollout.situation import Options


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


def builder(place: Place, base: Wanted, *, model: str = "") -> Callable[[Values], Wanted]:
    """Makes what must be true of an inventory with another layout, and maybe another `model`.

    What rules refuse is refused. Secrets are those of `base`: they were opened once.
    """
    changes = [Put(("layout",), place.layout), *([Put(("model",), model)] if model else [])]

    def build(values: Values) -> Wanted:
        overlay(place.folder / "trial", place.layout, values)
        data = Data(place.roots)
        text = data.text(place.inventory)
        data.give(place.inventory, edited(text, str(place.inventory), changes).encode())
        wish = load_from(data, place.inventory)
        wanted = resolve(replace(wish, secrets=base.wish.secrets))
        judged(wanted, data_dir=place.data_dir)
        return wanted

    return build


@dataclass(frozen=True, slots=True)
class TrialApprover:
    """Agrees to every layout: each is one that the user was shown."""

    checks: Preflight

    def preflight(self, fleet: Hands, proposal: Proposal) -> Report:
        """The same as before any other change."""
        return self.checks(fleet, proposal)

    def show(self, proposal: Proposal, report: Report) -> None:
        """The plan of a trial is not shown."""

    def agrees(self, proposal: Proposal) -> bool:
        """Always."""
        return True


@dataclass(frozen=True, slots=True)
class Trials:
    """Layouts on one fleet, whose hosts the caller has locked."""

    fleet: Hands
    run: Run
    record: Record
    about: RunRecord
    place: Place

    def common(self, repeats: int) -> dict[str, object]:
        """What all benchmarks of such a run have in common, as `bench_of` takes it."""
        telemetry = read_telemetry(Data(self.place.roots))
        return {"seed": 1, "repeats": repeats, "salt": self.run.id, "telemetry": telemetry}

    def look(self, wanted: Wanted, bench: Bench, point: Point, *, variable: bool) -> Measurement | str:
        """What is kept of a layout at a point, or else what it does: up with it, and a load on it.

        A text: why it did not come up, where that is the layout's own fault: it is `variable`.
        LauncherError for any other fault, and where it was interrupted.
        """
        key = bench.name(point, bench.seed)
        if self.place.measured(key).is_file():
            return read_measurement(self.place.measured(key))
        if self.place.failed(key).is_file():
            return self.place.failed(key).read_text(encoding="utf-8")
        fault = self.bring_up(wanted)
        if fault and not variable:
            raise LauncherError(fault)
        if fault:
            write_whole(self.place.failed(key), fault.what)
            return fault.what
        return self._measured(wanted, bench, point, key)

    def bring_up(self, wanted: Wanted) -> Problem | None:
        """The fleet with this layout; why it does not serve with it."""
        approver = TrialApprover(Preflight(self.place.data_dir))
        result = up(
            self.fleet, Goal(wanted, frozenset(wanted.steps), Options(needs_all=True)), approver, self.run
        )
        if result.exit_code is Exit.INTERRUPTED:
            raise InterruptedTrialError
        fault = result.problems[0] if result.problems else None
        if fault:
            unreached = self.fleet.ask(dict.fromkeys(wanted.steps, ()), within_s=look_within_s)
            if lost := [told for told in unreached.values() if isinstance(told, Problem)]:
                raise LauncherError(*lost)
        return fault

    def _measured(self, wanted: Wanted, bench: Bench, point: Point, key: str) -> Measurement:
        def told(found: Measured) -> None:
            if not self.record.interrupted():
                made = measurement(bench, wanted, self.about, (found,))
                write_whole(self.place.measured(key), document(made))

        measure(self.fleet, bench, point, replace(self.record, told=told))
        if not self.place.measured(key).is_file():
            raise InterruptedTrialError
        return read_measurement(self.place.measured(key))


class InterruptedTrialError(LauncherError):
    """The user pressed ctrl-C; what was found until then is kept."""

    exit_code = Exit.INTERRUPTED


def trial_of(made: Measurement) -> Trial:
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


def require_folder(folder: Path) -> None:
    """Have the folder, before anything else is done for it. InputError where nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        what = f"cannot write there: {(error.strerror or 'not writable').lower()}"
        raise InputError(Problem(what, str(folder), do="name another folder: --into FOLDER")) from None
