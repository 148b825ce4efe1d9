"""What is kept of a benchmark: all of it, in one shape, and read back as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench_records import METHOD, document, measurement

from launcher.bench.keep import document as as_json
from launcher.load.measurement import read_measurement
from launcher.model.problem import InputError


def test_what_is_kept_is_read_back_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    made = measurement(tmp_path)
    file.write_text(as_json(made))
    again = read_measurement(file)
    assert as_json(again) == as_json(made)
    assert (again.points, again.topology, again.method) == (made.points, made.topology, METHOD)


def test_programs_find_what_was_measured_on_what_and_the_verdict(tmp_path: Path) -> None:
    told = json.loads(as_json(measurement(tmp_path)))
    numbers = {k: v for k, v in document("disaggregated").items() if isinstance(v, (int, float))}
    (point,) = told["points"]
    figures = point["results"][0]["figures"]
    assert {k: figures[k] for k in numbers} == numbers, "the client's own figures, to the digit"
    assert told["format"] == 2
    assert point["summary"]["verdict"] == "FAIL"
    assert point["summary"]["margins"]["ttft_ms mean"] == pytest.approx(-0.0324, abs=1e-4)
    assert told["versions"]["engine"] == "vllm-0.32-cpu 0.32.0"
    seat = told["instances"][1]["seats"][1]
    assert (seat["host"], seat["ranks"], seat["command"][1]) == ("h03", {"1": []}, "serve")


def test_what_must_be_the_same_to_be_compared_has_words(tmp_path: Path) -> None:
    assert measurement(tmp_path).topology == {
        "hardware": "cpu",
        "model": "tiny",
        "prefill": "1 × (1 host, TP1 × DP1, no GPUs)",
        "decode": "1 × (2 hosts, TP1 × DP2, no GPUs)",
        "routers": "1",
    }


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[]", "format None of a kept benchmark, expected 2"),
        ('{"format": 1}', "format 1 of a kept benchmark, expected 2"),
        ("{", "this is no kept benchmark"),
        ('{"format": 2}', "`run` is missing"),
    ],
)
def test_what_is_none_is_told_with_its_file(text: str, what: str, tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        read_measurement(file)
    assert any(p.what.startswith(what) for p in refused.value.problems)
    assert all(str(file) in p.where for p in refused.value.problems)
