"""What an experiment says of its variants by what is kept of them, as text, page and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench_records import METHOD, RECORD, measurement, recorded
from samples import sample
from test_tune_live import Silent

from launcher.bench.keep import document as measured_document
from launcher.bench.workload import points_of
from launcher.flows import experiment_report
from launcher.flows.bench import bench_of
from launcher.flows.bench_run import Record
from launcher.flows.experiment import Arm, Told, arms_of, conducted
from launcher.flows.layout_trials import Place, Trials
from launcher.load.choice import Choice
from launcher.load.data import Data, shipped
from launcher.load.experiments import load_of, read_experiment
from launcher.model.bench import Result
from launcher.model.problem import LauncherError
from launcher.model.run import Event
from launcher.record.whole import write_whole
from launcher.resolve import resolve
from launcher.rollout.run import Run

DATA = Data((shipped(),))
SANDBOX = read_experiment(Choice("sandbox", ""), DATA)


class Bed:
    """The sandbox's experiment on hosts that nobody reaches: whatever is not kept cannot be measured."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.base = resolve(sample("sandbox-single", folder))
        self.place = Place(folder / "kept", "sandbox-single", folder / self.base.wish.inventory.path, None)
        self.arms = arms_of(SANDBOX, self.place, self.base)
        events: list[Event] = []
        run = Run("20261130T040000Z-experiment", events.append, lambda *_: "", lambda: False, "ops", "now")
        record = Record(events.append, lambda *_: "", lambda: False)
        self.trials = Trials(Silent(), run, record, RECORD, self.place)

    def key(self, arm: Arm) -> str:
        """Of what is kept of a variant."""
        workload, sla = load_of(SANDBOX.points["8"], DATA)
        more = {"seed": 1, "repeats": SANDBOX.repeats, "salt": "s"}
        bench = bench_of(arm.wanted, workload, sla, METHOD, target=workload.target, **more)
        return bench.name(points_of(workload, METHOD)[0], 1)

    def keep(self, arm: Arm, *runs: Result) -> None:
        """These runs, as if they had been measured before."""
        write_whole(self.place.measured(self.key(arm)), measured_document(measurement(self.folder, *runs)))

    def told(self) -> Told:
        """What it comes to."""
        return conducted(self.trials, SANDBOX, self.arms, METHOD)


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return Bed(tmp_path)


def test_variants_are_the_inventory_with_another_layout(bed: Bed) -> None:
    first, second = bed.arms
    assert first.changes == ()
    assert second.changes == ("- --max-num-seqs 16", "+ --max-num-seqs 1")
    assert second.wanted.wish.inventory.hosts.keys() == bed.base.wish.inventory.hosts.keys()
    assert second.wanted.wish.inventory.layout == "sandbox-one"


@pytest.mark.parametrize(
    ("slower", "finding", "said"),
    [
        (0.5, "as expected", "worse: tokens_per_s_per_gpu"),
        (0.97, "not as expected", "no different beyond noise"),
        (2.0, "not as expected", "better: tokens_per_s_per_gpu"),
    ],
)
def test_figures_are_held_against_what_was_expected(bed: Bed, slower: float, finding: str, said: str) -> None:
    first, second = bed.arms
    whole = recorded().figures["output_throughput"], recorded().figures["total_token_throughput"]
    changed: dict[str, Any] = {
        "output_throughput": whole[0] * slower,
        "total_token_throughput": whole[1] * slower,
    }
    bed.keep(first, recorded(), recorded())
    bed.keep(second, recorded(**changed), recorded(**changed))
    (contrast,) = bed.told().contrasts
    assert contrast.finding == finding
    assert contrast.reason.startswith(said)


def test_what_runs_of_one_variant_differ_by_hides_what_was_expected(bed: Bed) -> None:
    first, second = bed.arms
    half: dict[str, Any] = {"total_token_throughput": recorded().figures["total_token_throughput"] / 2}
    bed.keep(first, recorded(), recorded(**half))
    bed.keep(second, recorded(**half), recorded(**half))
    (contrast,) = bed.told().contrasts
    assert contrast.finding == "cannot tell"
    assert contrast.reason.startswith("no different beyond noise")


def test_what_did_not_come_up_or_is_doubtful_is_not_told(bed: Bed) -> None:
    first, second = bed.arms
    bed.keep(first, recorded())
    write_whole(bed.place.failed(bed.key(second)), "decode-0 ended")
    assert [c.reason for c in bed.told().contrasts] == ["it did not come up: decode-0 ended"]
    bed.place.failed(bed.key(second)).unlink()
    bed.keep(second, recorded(completed=60))
    (contrast,) = bed.told().contrasts
    assert (contrast.finding, contrast.share) == ("cannot tell", None)
    assert contrast.reason.startswith("the figures cannot be trusted: 4 of 64 requests failed")


def test_what_is_not_kept_is_measured_and_hosts_that_are_away_are_no_finding(bed: Bed) -> None:
    bed.keep(bed.arms[0], recorded())
    with pytest.raises(LauncherError, match="no route to host"):
        bed.told()
    assert not bed.place.failed(bed.key(bed.arms[1])).exists()


def test_report_and_json_have_each_variant_by_its_name(bed: Bed) -> None:
    first, second = bed.arms
    bed.keep(first, recorded())
    bed.keep(second, recorded(mean_ttft_ms=9000.0))
    told = bed.told()
    page = experiment_report.pages(told, DATA)
    for text in page.values():
        assert "Experiment sandbox" in text
        assert SANDBOX.hypothesis in text
        assert f"{RECORD.id} one" in text
        assert "9,000.00" in text
    made = json.loads(json.dumps(experiment_report.document(told)))
    assert [v["id"] for v in made["variants"]] == ["sixteen", "one"]
    assert made["variants"][1]["points"]["8"]["figures"]["ttft_ms"] == [9000.0]
    assert made["contrasts"][0]["finding"] == "not as expected"


def test_nothing_measured_is_no_page(bed: Bed) -> None:
    for arm in bed.arms:
        write_whole(bed.place.failed(bed.key(arm)), "decode-0 ended")
    told = bed.told()
    assert experiment_report.pages(told, DATA) == {}
    assert [c.finding for c in told.contrasts] == ["cannot tell"]
