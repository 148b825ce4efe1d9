"""Baselines: kept benchmarks that later ones are held against, one for each load and topology."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from launcher.model.measurement import Measurement
from launcher.model.problem import InputError, Problem
from launcher.record.whole import write_whole

KEPT = "bench.json"
"""In a run's folder: what a benchmark measured."""


def baselines_folder(environment: Mapping[str, str]) -> Path:
    """`$DSV32_BASELINES`, else `baselines` where the command was given."""
    return Path(environment.get("DSV32_BASELINES") or "baselines")


def baseline_path(folder: Path, measurement: Measurement) -> Path:
    """Where the baseline of its load and its topology is; `article-2p1d-service-1a2b3c4d.json`."""
    told = json.dumps(measurement.topology, sort_keys=True)
    digest = hashlib.sha256(told.encode()).hexdigest()[:8]
    return folder / f"{measurement.workload.name}-{measurement.target}-{digest}.json"


def store(path: Path, text: str) -> bool:
    """Keep it there; was there one before? InputError where that cannot be written."""
    before = path.exists()
    try:
        write_whole(path, text)
    except OSError as error:
        what = f"the baseline cannot be kept: {(error.strerror or 'not writable').lower()}"
        do = "set DSV32_BASELINES to a folder that you may write to"
        raise InputError(Problem(what, str(path), do=do)) from None
    return before


def kept_path(runs: Path, name: str) -> Path:
    """The benchmark of a run, or of the newest one that has one: `last`; a path is taken as it is.

    InputError where there is none.
    """
    if name.endswith(".json"):
        return Path(name)
    names = [path.parent.name for path in sorted(runs.glob(f"*/{KEPT}"))]
    if not names or (name != "last" and name not in names):
        what = f"run {name} has measured nothing" if names else "no run has measured anything"
        why = f"there are {', '.join(names[-3:])}" if names else ""
        do = "dsv32-launch bench, or set DSV32_RUNS to the folder that holds the runs"
        raise InputError(Problem(what, str(runs), why, do))
    return runs / (names[-1] if name == "last" else name) / KEPT
