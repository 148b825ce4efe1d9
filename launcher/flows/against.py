"""compare, gate: a benchmark held against another one, or against the baseline of its load and topology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.bench.against import Change, Difference, Judged, changes, differences, gate, incomparable
from launcher.bench.keep import document
from launcher.load.measurement import read_measurement
from launcher.model.bench import Gate, Verdict, worst
from launcher.model.measurement import Measurement
from launcher.model.problem import InputError, Problem
from launcher.record.baselines import baseline_path, baselines_folder, kept_path, store
from launcher.record.journal import runs_folder


@dataclass(frozen=True, slots=True)
class Compared:
    """Two benchmarks side by side."""

    before: Measurement
    after: Measurement
    differences: tuple[Difference, ...]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Gated:
    """A benchmark held against a baseline."""

    before: Measurement
    after: Measurement
    differences: tuple[Difference, ...]
    judged: tuple[Judged, ...]

    @property
    def verdict(self) -> Verdict:
        """FAIL before CANNOT TELL before PASS; nothing to judge is nothing known."""
        return worst((j.verdict for j in self.judged), of_none="CANNOT TELL")


def kept(environment: Mapping[str, str], name: str) -> Measurement:
    """What a run has measured; `last`: the newest that has. InputError where there is none."""
    return read_measurement(kept_path(runs_folder(environment), name))


def compared(before: Measurement, after: Measurement) -> Compared:
    """Side by side. InputError where they have no point in common."""
    found = changes(before, after)
    if not found:
        points = ["; ".join(str(m.point) for m in one.points) or "none" for one in (before, after)]
        what = f"the two have no point in common: {points[0]}, and {points[1]}"
        raise InputError(Problem(what, f"{before.run}, {after.run}", do="measure the same loads"))
    return Compared(before, after, differences(before, after), found)


def gated(before: Measurement, after: Measurement, allowed: Gate) -> Gated:
    """Held against it. InputError where load or topology are not the same."""
    if problems := incomparable(before, after):
        raise InputError(*problems)
    return Gated(before, after, differences(before, after), gate(before, after, allowed))


def kept_baseline(environment: Mapping[str, str], measurement: Measurement) -> Measurement | None:
    """The baseline of its load and topology; None where nobody has kept one."""
    path = baseline_path(baselines_folder(environment), measurement)
    return read_measurement(path) if path.exists() else None


def baseline_of(environment: Mapping[str, str], measurement: Measurement) -> Measurement:
    """The same. InputError where nobody has kept one."""
    found = kept_baseline(environment, measurement)
    if found is None:
        path = baseline_path(baselines_folder(environment), measurement)
        what = f"there is no baseline of {measurement.workload.name} for this topology"
        why = "; ".join(f"{k}: {v}" for k, v in measurement.topology.items())
        do = f"keep one that is good: dsv32-launch gate {measurement.run} --store"
        raise InputError(Problem(what, str(path), why, do))
    return found


def keep_as_baseline(environment: Mapping[str, str], measurement: Measurement) -> tuple[Path, bool]:
    """Where it is kept, and was another there? InputError for one that nothing can be held against."""
    doubts = [f"{m.point}: {d}" for m in measurement.points for d in m.doubts]
    short = [str(m.point) for m in measurement.points if len(m.results) < 2]
    if doubts or short or not measurement.points:
        what = doubts[0] if doubts else f"{short[0]} was run once" if short else "nothing was measured"
        why = "a baseline says how far runs of one service differ" if short else ""
        do = f"dsv32-launch bench {measurement.workload.name} --repeat 3"
        raise InputError(Problem(f"no baseline: {what}", measurement.run, why, do))
    path = baseline_path(baselines_folder(environment), measurement)
    return path, store(path, document(measurement))
