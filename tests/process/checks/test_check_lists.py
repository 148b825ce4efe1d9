"""What `check` lists, explains and compares without an inventory or a host."""

from __future__ import annotations

import json
import re
from pathlib import Path

from commands import launch

from launcher.checks.loadkept import document, kept
from launcher.flows.check import all_checks
from launcher.flows.check_load import every
from launcher.model.load_check import End, Figure
from launcher.model.problem import Exit

LOAD_CHECKS = {check.id: check for check in every()}


def test_checks_are_listed_and_told_without_an_inventory(tmp_path: Path) -> None:
    listed = launch("check", "--list", "--json", folder=tmp_path)
    assert {json.loads(line)["id"] for line in listed.stdout.splitlines()} == {
        check.id for check in all_checks()
    }
    whole = launch("check", "--explain", "gpu-count", folder=tmp_path).stdout
    for word in ("nvidia-smi -L", "owner   hardware", "configs/checks/gpu.yaml:", "--despite gpu-count"):
        assert word in whole
    unknown = launch("check", "--only", "gpu-cuont", folder=tmp_path)
    assert unknown.returncode == 2
    assert "did you mean `gpu-count`?" in unknown.stderr


def keep(folder: Path, name: str, **values: float) -> None:
    figures = [Figure("disk-read", (End(host),), value) for host, value in values.items()]
    (folder / "runs" / name).mkdir(parents=True)
    text = document(name, "small", [(kept(LOAD_CHECKS["disk-read"], figures), ())])
    (folder / "runs" / name / "load.json").write_text(text)


def test_load_checks_are_listed_told_and_compared_without_a_host(tmp_path: Path) -> None:
    listed = launch("check", "--load", "--list", "--json", folder=tmp_path)
    assert {json.loads(line)["id"] for line in listed.stdout.splitlines()} == LOAD_CHECKS.keys()
    told = launch("check", "--load", "--explain", "rdma-write", folder=tmp_path).stdout
    assert re.search(
        "expects error below 360 Gb/s, warning below 380 Gb/s, warning 5% below the median", told
    )
    keep(tmp_path, "20260101T000000Z-check-load", a=20.0, b=20.0)
    keep(tmp_path, "20260201T000000Z-check-load", a=20.5, b=12.0)
    done = launch("check", "--compare", "20260101T000000Z-check-load", "last", folder=tmp_path)
    assert done.returncode == Exit.WARNINGS
    assert "worse   b: 20 → 12" in done.stdout
    same = launch("check", "--compare", "last", "last", folder=tmp_path)
    assert same.returncode == Exit.DONE
    none = launch("check", "--compare", "last", "other", folder=tmp_path)
    assert none.returncode == Exit.INPUT_WRONG
    assert "run other kept no load.json" in none.stderr
    unmeant = launch("check", "--load", "--despite", folder=tmp_path)
    assert "no reason is given" in unmeant.stderr
