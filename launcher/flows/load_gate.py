"""LoadGate: a load on a service before its first change and after its last; knows what it is held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from launcher.bench.against import incomparable
from launcher.bench.keep import document
from launcher.bench.workload import points_of
from launcher.execute.hands import Hands
from launcher.flows.against import Gated, gated, keep_as_baseline, kept_baseline
from launcher.flows.bench import bench_of, measure, measurement, refuse_silent
from launcher.flows.bench_run import Bench, Record
from launcher.model.bench import Method, Point
from launcher.model.measurement import Measurement
from launcher.model.problem import InputError, Problem
from launcher.model.run import RunRecord
from launcher.model.sla import Sla, Workload
from launcher.model.telemetry import Telemetry
from launcher.model.wish import Wanted
from launcher.rollout.planning import Goal, propose, respecting


@dataclass(frozen=True, slots=True)
class LoadGate:
    """A load that a rollout is held against."""

    workload: Workload
    sla: Sla | None
    method: Method
    telemetry: Telemetry
    record: Record
    about: RunRecord
    environment: Mapping[str, str]
    """Says where baselines are kept."""

    def kept(self, fleet: Hands, before: Wanted, after: Wanted) -> Measurement | None:
        """The baseline that somebody has kept of this load and topology; None: it is to be measured.

        InputError where there is none and none can be had any more, for part of the service has moved, and
        where what is wanted has another topology.
        """
        load, now = self._load_on(fleet, before), self._load_on(fleet, after)
        baseline = kept_baseline(self.environment, load)
        held = baseline or load
        if problems := incomparable(held, replace(now, points=held.points)):
            raise InputError(*problems)
        if baseline is None and _has_moved(fleet, before):
            what = f"there is no baseline of {self.workload.name}, and what runs is not what was before"
            do = "the same without --gate, or a rollback first: dsv32-launch status"
            raise InputError(Problem(what, "--gate", "a baseline is measured before anything moves", do))
        return baseline

    def baseline(self, fleet: Hands, before: Wanted) -> Measurement | None:
        """What runs now, measured and kept as a baseline; None where somebody has asked to stop.

        InputError for figures that nothing can be held against.
        """
        aside = replace(self.record, keep=lambda name, text: self.record.keep(f"before/{name}", text))
        points = points_of(self.workload, self.method)
        made = self._measured(fleet, before, aside, points, repeats=self.method.gate.repeats)
        if self.record.interrupted():
            return None
        keep_as_baseline(self.environment, made)
        return made

    def judged(self, fleet: Hands, after: Wanted, baseline: Measurement) -> Gated:
        """The same points, as often, on what runs now. LauncherError where nothing can be measured."""
        points, repeats = [m.point for m in baseline.points], baseline.repeats
        made = self._measured(fleet, after, self.record, points, repeats=repeats, seed=baseline.seed)
        self.record.keep("bench.json", document(made))
        return gated(baseline, made, self.method.gate)

    def _measured(
        self, fleet: Hands, wanted: Wanted, record: Record, points: Sequence[Point], **more: int
    ) -> Measurement:
        here = respecting(fleet, wanted)
        bench = self._bench(here, **more)
        refuse_silent(fleet, bench)
        found = (measure(fleet, bench, p, record) for p in points if not record.interrupted())
        return measurement(bench, here, self.about, tuple(found))

    def _load_on(self, fleet: Hands, wanted: Wanted) -> Measurement:
        """Of nothing measured yet: its load and topology."""
        here = respecting(fleet, wanted)
        return measurement(self._bench(here), here, self.about, ())

    def _bench(self, wanted: Wanted, *, seed: int = 1, repeats: int = 1) -> Bench:
        more = {"seed": seed, "repeats": repeats, "salt": self.about.id, "telemetry": self.telemetry}
        target = self.workload.target
        return bench_of(wanted, self.workload, self.sla, self.method, target=target, **more)


def _has_moved(fleet: Hands, before: Wanted) -> bool:
    """Does anything else serve, or was a run killed that had drained something?"""
    proposal = propose(fleet, Goal(before, frozenset(before.steps)))
    return bool(proposal.plan.stage("engine") or proposal.now.left_drained)
