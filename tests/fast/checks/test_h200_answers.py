"""What a host with two H200 answered to what `check` asks (scripts/h200/answers), judged as it was there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from launcher.checks.asked import Asked, asked_of
from launcher.checks.judge import findings_of, outcome_of
from launcher.load import load
from launcher.load.checks import read_checks
from launcher.load.data import Data, shipped
from launcher.model.facts import Facts, Probe
from launcher.resolve import resolve

H200 = Path(__file__).parents[3] / "scripts/h200"
HOST = "h01"


def tupled(value: object) -> object:
    return tuple(tupled(v) for v in value) if isinstance(value, list) else value


def answers() -> Facts:
    rows = map(json.loads, (Path(__file__).parent / "h200-answers.jsonl").read_text().splitlines())
    return Facts(
        HOST, {Probe(row["kind"], tuple(tupled(a) for a in row["args"])): row["answer"] for row in rows}
    )


FACTS = answers()


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Asked, ...]:
    """What `check` asks by itself, as far as it was asked there in these words."""
    folder = tmp_path_factory.mktemp("h200")
    shutil.copytree(H200 / "data", folder / "data")
    hardware = folder / "data/configs/hardware/h200-1gpu.yaml"
    hardware.write_text(hardware.read_text().replace("gpus_per_host: 1", "gpus_per_host: 2"))
    config = folder / "ssh_config"
    config.write_text("".join(f"Host h{i:02}\n  HostName 10.77.0.{10 + i}\n" for i in range(1, 5)))
    text = (H200 / "inventory.yaml").read_text().replace("/var/tmp/dsv32-sandbox/ssh_config", str(config))
    (folder / "one.yaml").write_text(text)
    wanted = resolve(load(folder / "one.yaml", data_dir=folder / "data", environment={}))
    found = asked_of(read_checks(Data((shipped(),))), wanted, [HOST])
    return tuple(a for a in found if not a.check.slow and all(probe in FACTS for probe in a.probes))


def test_its_gpus_and_their_links_are_as_they_must_be(asked: tuple[Asked, ...]) -> None:
    gpu = {a.check.id: outcome_of(a, FACTS).state for a in asked if a.check.topic == "gpu"}
    assert {
        "driver-answers",
        "gpu-count",
        "gpu-memory",
        "fabric-state",
        "nvlinks",
        "nvlink-errors",
    } <= gpu.keys()
    assert {state for id, state in gpu.items() if id != "peermem-loaded"} <= {"ok", "absent"}


def test_red_is_what_was_red_there(asked: tuple[Asked, ...]) -> None:
    found = findings_of(asked, {HOST: FACTS})
    assert {f.check.id for f in found if f.verdict == "wrong"} == {
        *("kernel-headers", "time-synchronized", "shared-answers", "numa-memory"),
        *("kernel-cmdline", "peermem-loaded"),
    }
