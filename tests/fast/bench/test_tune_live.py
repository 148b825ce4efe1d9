"""What a tune keeps of each layout: it is not measured twice, and nothing else is blamed on a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from bench_records import METHOD, RECORD, measurement, recorded
from no_hands import NoHands
from samples import sample

from launcher.bench.keep import document
from launcher.flows.bench_run import Record
from launcher.flows.layout_trials import Place, Trials, trial_of
from launcher.flows.tune_live import Live, Terms
from launcher.load.choice import Choice
from launcher.load.data import Data, shipped
from launcher.load.sla import read_workload
from launcher.load.tunes import read_tune
from launcher.model.facts import Probe
from launcher.model.problem import LauncherError, Problem
from launcher.model.run import Event
from launcher.record.whole import write_whole
from launcher.resolve import resolve
from launcher.rollout.run import Run

T = TypeVar("T")
DATA = Data((shipped(),))
TUNE = read_tune(Choice("sandbox", ""), DATA)
AWAY = Problem("no route to host", "h01")


@dataclass
class Silent(NoHands):
    """A fleet whose hosts nobody reaches."""

    asked: list[str] = field(default_factory=list)

    def ask(self, questions: Mapping[str, Sequence[Probe]], *, within_s: float) -> Mapping[str, Any]:
        self.asked += questions
        return dict.fromkeys(questions, AWAY)

    def lock(self, hosts: Iterable[str]) -> dict[str, Problem]:
        return dict.fromkeys(hosts, AWAY)


@pytest.fixture
def live(tmp_path: Path) -> Live:
    events: list[Event] = []
    run = Run("20261130T040000Z-tune", events.append, lambda *_: "", lambda: False, "ops", "now")
    workload, level = read_workload(Choice(TUNE.workload, ""), DATA)
    record = Record(events.append, lambda *_: "", lambda: False)
    place = Place(tmp_path / "tuned", "sandbox-single-tuned", tmp_path / "i.yaml", None)
    return Live(Trials(Silent(), run, record, RECORD, place), Terms(TUNE, workload, level, METHOD))


def test_what_is_kept_is_not_asked_for_again(live: Live, tmp_path: Path) -> None:
    wanted, step = resolve(sample("sandbox-single", tmp_path)), TUNE.steps[0]
    bench, point = live._bench(wanted, step)
    assert point.concurrency == TUNE.requests_per_host
    place = live.trials.place
    kept = place.measured(bench.name(point, bench.seed))
    write_whole(kept, document(measurement(tmp_path, recorded())))
    found = live.look(wanted, step, (step.id,))
    assert found.figures["ttft_ms"] == (recorded().figures["mean_ttft_ms"],)
    kept.unlink()
    write_whole(place.failed(bench.name(point, bench.seed)), "decode-0 ended")
    assert live.look(wanted, step, (step.id,)).failed == "decode-0 ended"
    assert live.trials.fleet.asked == []  # type: ignore[attr-defined]


def test_hosts_that_are_away_are_no_fault_of_a_step(live: Live, tmp_path: Path) -> None:
    """It ends, and nothing is kept of the layout: given again it is tried."""
    wanted, step = resolve(sample("sandbox-single", tmp_path)), TUNE.steps[0]
    with pytest.raises(LauncherError) as error:
        live.look(wanted, step, (step.id,))
    assert AWAY in error.value.problems
    assert not live.trials.place.folder.exists()


def test_a_trial_has_each_runs_figures_and_verdicts(tmp_path: Path) -> None:
    fast, slow = recorded(mean_ttft_ms=4000.0), recorded(mean_ttft_ms=9000.0)
    found = trial_of(measurement(tmp_path, fast, slow))
    assert found.figures["ttft_ms"] == (4000.0, 9000.0)
    assert found.limits == {"ttft_ms mean": "CANNOT TELL"}, "one of two runs keeps it"
    assert found.requests_at_once == 16
