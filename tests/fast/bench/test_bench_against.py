"""Two benchmarks side by side: what differs, what is worse, and when neither can be said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from bench_records import METHOD, measurement, recorded

from launcher.bench.against import changes, differences, gate, incomparable
from launcher.bench.keep import document
from launcher.cli.againsttext import compared_text, gated_text
from launcher.flows.against import baseline_of, compared, gated, keep_as_baseline, kept
from launcher.model.bench import Point, Verdict
from launcher.model.measurement import Measurement
from launcher.model.problem import InputError

RAW = 5000.0


def slowed(folder: Path, *factors: float) -> Measurement:
    """The recorded run once for each factor, its TTFT that many times 5 s."""
    return measurement(folder, *(recorded(mean_ttft_ms=RAW * factor) for factor in factors))


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ((1.0, 1.02, 0.98), (1.05, 1.04, 1.06), "PASS"),
        ((1.0, 1.0, 1.0), (1.09, 1.09, 1.09), "PASS"),
        ((1.0, 1.0, 1.0), (1.11, 1.11, 1.11), "FAIL"),
        ((1.0, 1.2, 0.8), (1.09, 1.09, 1.09), "PASS"),
        ((1.0, 1.2, 0.8), (1.15, 1.15, 1.15), "CANNOT TELL"),
        ((1.0, 1.2, 0.8), (1.4, 1.4, 1.4), "FAIL"),
        ((1.0, 1.02, 0.98), (1.5,), "FAIL"),
        ((1.0,), (1.5,), "CANNOT TELL"),
        ((1.0, 1.0, 1.0), (0.5, 0.5, 0.5), "PASS"),
    ],
    ids=[
        "noise",
        "within",
        "beyond",
        "noisy",
        "hidden",
        "beyond-noise",
        "one-against-three",
        "one-each",
        "better",
    ],
)
def test_worse_is_more_than_what_is_allowed_and_what_runs_differ_by(
    before: Sequence[float], after: Sequence[float], verdict: Verdict, tmp_path: Path
) -> None:
    found = gate(slowed(tmp_path, *before), slowed(tmp_path, *after), METHOD.gate)
    assert {str(j.change.figure): j.verdict for j in found}["ttft_ms mean"] == verdict


def test_fewer_tokens_a_second_are_worse(tmp_path: Path) -> None:
    before = measurement(tmp_path, recorded(), recorded())
    after = measurement(tmp_path, *[recorded(total_token_throughput=9000.0)] * 2)
    failed = [str(j.change.figure) for j in gate(before, after, METHOD.gate) if j.verdict == "FAIL"]
    assert failed == ["tokens_per_s mean"]
    assert [c.figure.name for c in changes(before, after) if c.apart.worse_by > 0] == ["tokens_per_s"]


def test_a_doubtful_run_is_not_judged(tmp_path: Path) -> None:
    after = measurement(tmp_path, *[recorded(cpu_percent=99.0)] * 2)
    found = gate(slowed(tmp_path, 1.0, 1.0), after, METHOD.gate)
    assert {j.verdict for j in found} == {"CANNOT TELL"}
    assert found[0].why.startswith("the client itself was the bottleneck")


def test_requests_that_fail_where_none_did_are_worse_and_else_tell_nothing(tmp_path: Path) -> None:
    good, lossy = slowed(tmp_path, 1.0, 1.0), measurement(tmp_path, *[recorded(completed=60)] * 2)
    worse = {(j.verdict, j.why) for j in gate(good, lossy, METHOD.gate)}
    assert worse == {("FAIL", "8 of 128 requests failed, and none before")}
    assert {j.verdict for j in gate(lossy, lossy, METHOD.gate)} == {"CANNOT TELL"}


def test_what_differs_is_named_and_refused_where_it_is_load_or_topology(tmp_path: Path) -> None:
    before = slowed(tmp_path, 1.0, 1.0)
    seat = before.instances[1].seats[0]
    words = ["3" if flag == "--max-num-seqs" else word for flag, word in pairwise(("", *seat.command))]
    other = replace(seat, command=tuple(words))
    decode = replace(before.instances[1], seats=(other, *before.instances[1].seats[1:]))
    versions = {**before.versions, "engine": "vllm-0.33 0.33.0"}
    faster = replace(before, versions=versions, instances=(before.instances[0], decode))
    assert [(d.of, d.what, d.after) for d in differences(before, faster)] == [
        ("version", "engine", "vllm-0.33 0.33.0"),
        ("setting", "decode --max-num-seqs", "3"),
    ]
    assert incomparable(before, faster) == ()
    smaller = replace(before, instances=(before.instances[0], replace(decode, seats=decode.seats[:1])))
    longer = replace(before, workload=replace(before.workload, output_tokens=64))
    unfinished = replace(before, points=())
    with pytest.raises(InputError) as refused:
        gated(before, smaller, METHOD.gate)
    assert refused.value.problems[0].what == (
        "topology differs from the baseline's: decode is 1 × (1 host, TP1 × DP2, no GPUs), "
        "expected 1 × (2 hosts, TP1 × DP2, no GPUs)"
    )
    assert "workload differs" in incomparable(before, longer)[0].what
    assert incomparable(before, unfinished)[0].what == (
        "1 points of the baseline were not measured: concurrency 16"
    )
    with pytest.raises(InputError, match="no point in common"):
        compared(before, measurement(tmp_path, point=Point(64, 8)))


def test_a_baseline_is_that_of_its_load_and_topology(tmp_path: Path) -> None:
    here = {"DSV32_BASELINES": str(tmp_path / "kept"), "DSV32_RUNS": str(tmp_path / "runs")}
    good = slowed(tmp_path, 1.0, 1.02)
    with pytest.raises(InputError, match="no baseline of load"):
        baseline_of(here, good)
    path, replaced = keep_as_baseline(here, good)
    assert (path.parent, replaced) == (tmp_path / "kept", False)
    assert keep_as_baseline(here, good) == (path, True)
    assert document(baseline_of(here, slowed(tmp_path, 2.0))) == document(good)
    with pytest.raises(InputError, match="no baseline of load"):
        baseline_of(here, replace(good, hardware="h200"))
    with pytest.raises(InputError, match="was run once"):
        keep_as_baseline(here, slowed(tmp_path, 1.0))
    with pytest.raises(InputError, match="4 of 64 requests failed"):
        keep_as_baseline(here, measurement(tmp_path, *[recorded(completed=60)] * 2))


def test_runs_that_measured_are_found_by_name(tmp_path: Path) -> None:
    here = {"DSV32_RUNS": str(tmp_path / "runs")}
    with pytest.raises(InputError, match="no run has measured anything"):
        kept(here, "last")
    for number, factor in enumerate((1.0, 2.0)):
        folder = tmp_path / f"runs/2026113{number}-bench"
        folder.mkdir(parents=True)
        (folder / "bench.json").write_text(document(replace(slowed(tmp_path, factor), run=folder.name)))
    (tmp_path / "runs/20261139-up").mkdir()
    assert kept(here, "last").run == "20261131-bench"
    assert kept(here, "20261130-bench").run == "20261130-bench"
    assert kept({}, str(tmp_path / "runs/20261130-bench/bench.json")).run == "20261130-bench"
    with pytest.raises(InputError, match="run 20261139-up has measured nothing"):
        kept(here, "20261139-up")


def test_the_gate_names_the_figure(tmp_path: Path) -> None:
    before, after = slowed(tmp_path, 1.0, 1.0, 1.0), slowed(tmp_path, 1.5, 1.52, 1.5)
    told = gated_text(gated(before, after, METHOD.gate)).splitlines()
    assert told[-2:] == [
        "gate: FAIL",
        "  FAIL         concurrency 16: ttft_ms mean 5000.00 → 7500.00, "
        "50.0 % worse, allowed 10% and noise 1.0 %",
    ]
    told = compared_text(compared(before, after)).splitlines()
    assert told[1] == "  topology, workload, versions and settings are the same"
    row = next(line for line in told if "ttft_ms mean" in line)
    assert " ".join(row.split()) == "concurrency 16 ttft_ms mean 5000.00 7500.00 1.500 50.0 % 1.0 %"
    assert json.loads(document(after))["points"][0]["summary"]["verdict"] == "FAIL"
