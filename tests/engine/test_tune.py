"""A tune with a real engine: killed while it measures, it goes on, and measures nothing twice."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from engine_hosts import ROOT, WITHIN_S, Service

STEPS = """\
about: Two steps that start no engine anew, for the first is refused, and the second is there already.
pool: decode
workload: smoke
requests_per_host: 4
repeats: 1
noise: 0.02
steps:
  too-wide:
    hypothesis: Three hosts are more than one
    known_from: this test
    change: {decode: {hosts_per_instance: 3, data_parallel: fill}}
  the-same:
    hypothesis: What is there already is as good as it was
    known_from: this test
    change: {settings: {all: {max-num-seqs: 16}}}
"""


@pytest.fixture
def lone(service: Service) -> Service:
    """An inventory of one engine by itself, on the first of the hosts, and a tune of the test's own."""
    text = (ROOT / "inventories/sandbox-single.yaml").read_text()
    text = text.replace("/var/tmp/dsv32-sandbox/ssh_config", str(service.sandbox.ssh_config))
    (service.folder / "lone.yaml").write_text(text)
    tunes = service.folder / "data/configs/tunes"
    tunes.mkdir(parents=True, exist_ok=True)
    (tunes / "two-steps.yaml").write_text(STEPS)
    return service


def begun(service: Service) -> subprocess.Popen[str]:
    words = ("tune", "two-steps", "--inventory", "lone.yaml", "--data-dir", "data", "--yes", "--json")
    argv = [sys.executable, "-m", "launcher.cli.main", *words]
    return subprocess.Popen(argv, cwd=service.folder, stdout=subprocess.PIPE, text=True)


def told(service: Service) -> list[dict[str, Any]]:
    """What it says until it ends well."""
    program = begun(service)
    assert program.stdout
    lines = [json.loads(line) for line in program.stdout]
    assert program.wait(WITHIN_S) == 0, lines[-3:]
    return lines


def test_a_tune_goes_on_where_it_was_killed_and_measures_nothing_twice(lone: Service) -> None:
    program = begun(lone)
    assert program.stdout
    assert any(json.loads(line).get("text") == "measuring" for line in program.stdout), "it ended before"
    program.kill()
    program.wait(WITHIN_S)

    again = told(lone)
    assert "attached to a run that was begun before" in [line.get("text") for line in again]
    (found,) = (line for line in again if line["type"] == "tuned")
    reasons = {d["step"]: (d["outcome"], d["reason"]) for d in found["decisions"]}
    assert reasons["the-same"] == ("skipped", "the engines' command lines have it already")
    outcome, reason = reasons["too-wide"]
    assert outcome == "skipped"
    assert "pool decode has 1 host, expected 3" in reason
    assert found["start"]["figures"]["tokens_per_s_per_gpu"][0] > 0
    assert (lone.folder / "tuned/sandbox-two-steps/report.md").is_file()

    third = told(lone)
    assert not [line for line in third if line["type"] == "event" and line["kind"] == "measured"]
    overlay = ("--data-dir", "tuned/sandbox-two-steps")
    (lone.folder / "tuned.yaml").write_text(
        (lone.folder / "lone.yaml").read_text().replace("sandbox-single", "sandbox-single-tuned")
    )
    argv = [sys.executable, "-m", "launcher.cli.main", "plan", "tuned.yaml", *overlay]
    assert subprocess.run(argv, cwd=lone.folder, timeout=WITHIN_S, check=False).returncode == 0
