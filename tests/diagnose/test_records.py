"""Logs of real engines, routers and fronts: starts are nothing wrong, deaths have their cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.flows.diagnose import Report, of_files

HERE = Path(__file__).parent
GPU_PROCESSES = "on h02: nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv"
UNIT_DATA = HERE.parents[0] / "unit/data"
QUIET = [
    *sorted(HERE.glob("quiet/*/*/*.log")),
    *(UNIT_DATA / name for name in ("prefill-ready.log", "decode-deepgemm-warmup.log")),
]


def of(path: Path) -> Report:
    return of_files([path], version="", data_dir=None)


@pytest.mark.parametrize("path", QUIET, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_an_ordinary_log_is_nothing_wrong(path: Path) -> None:
    assert [c.likely for c in of(path).diagnosis.causes] == []


def test_ten_of_them_are_held() -> None:
    assert len(QUIET) >= 10


def test_a_whole_deployment_that_serves_is_nothing_wrong() -> None:
    assert not of(HERE / "quiet/sandbox").found


def test_a_killed_process_is_the_cause_of_all_that_five_logs_say() -> None:
    """One of two hosts was killed; its peer left with status 0, router and front answered 500 and 503."""
    (cause,) = of(HERE / "records/peer-killed").diagnosis.causes
    assert (cause.first.key, cause.first.line.host, cause.do) == ("killed", "h03", "dsv32-launch up")
    told = [effect.match.key for effect in cause.effects]
    assert told[0] == "gloo-peer-gone"
    assert {*told} >= {"left-with-its-peer", "router-decode-failed", "front-nobody", "kv-expired"}


@pytest.mark.parametrize(
    ("name", "signature", "do", "effects"),
    [
        ("kv-too-small", "no-kv-memory", "dsv32-launch fit --explain", {"engine-start-failed", "stopped"}),
        ("port-taken", "port-in-use-unnamed", "on h03: ss -ltnp", {"ended-with-error", "stopped"}),
        ("bad-flag", "bad-flag-value", "dsv32-launch explain max-num-seqs", {"ended-with-error"}),
        ("gpu-full", "gpu-memory-taken", GPU_PROCESSES, {"engine-start-failed", "ended-with-error"}),
    ],
)
def test_an_instance_that_does_not_start_is_told_by_its_cause(
    name: str, signature: str, do: str, effects: set[str]
) -> None:
    """The front had no router before, as in every restart: an observer is never the first cause."""
    first, *others = of(HERE / "records" / name).diagnosis.causes
    assert (first.first.key, first.do) == (signature, do)
    assert {effect.match.key for effect in first.effects} >= effects
    assert {cause.sure for cause in others} <= {"consequence"}
