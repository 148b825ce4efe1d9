"""What a guard finds out about its own host."""

from __future__ import annotations

import mmap
import socket
from pathlib import Path
from typing import Any

import pytest
from guard_loaded import guard_module

GUARD = guard_module()


def test_shared_memory_goes_when_nobody_has_it_mapped(tmp_path: Path) -> None:
    for name in ("nccl-dead", "nccl-alive", "other"):
        (tmp_path / name).write_bytes(b"0" * mmap.PAGESIZE)
    with (tmp_path / "nccl-alive").open("r+b") as file, mmap.mmap(file.fileno(), 0):
        GUARD.sweep(["nccl-*"], str(tmp_path))
        assert sorted(p.name for p in tmp_path.iterdir()) == ["nccl-alive", "other"]


@pytest.mark.parametrize(
    ("busy", "said"),
    [
        ([], ""),
        (["true"], ""),
        (["printf", "4711\n4712\n"], "the GPUs, which have 4711 4712"),
        (["false"], "Command '['false']' returned non-zero exit status 1."),
        (["/no/such/program"], "[Errno 2] No such file or directory: '/no/such/program'"),
    ],
)
def test_gpus_are_free_when_nothing_is_said_of_them(busy: list[str], said: str) -> None:
    assert GUARD.occupied({"address": "127.0.0.1", "ports": [], "busy": busy}) == said


def test_a_port_that_somebody_holds_is_named() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        config: dict[str, Any] = {"address": "127.0.0.1", "ports": [port], "busy": []}
        assert GUARD.occupied(config) == f"port {port}: address already in use"
    assert GUARD.occupied(config) == ""


def test_a_metric_is_summed_over_its_labels() -> None:
    text = (
        '# TYPE a_total counter\na_total{engine="0"} 2.0\na_total{engine="1"} 3e1\na_total_created 9\nb 1\n'
    )
    assert (GUARD.total(text, "a_total"), GUARD.total(text, "b"), GUARD.total(text, "c")) == (32.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("waited_s", "change", "trouble"),
    [
        (50.0, {}, ""),
        (61.0, {}, "it was not ready within 61 s"),
        (61.0, {"ready_s": 10.0, "answered_s": 60.0, "moved_s": 60.0}, ""),
        (
            61.0,
            {"ready_s": 10.0, "answered_s": 40.0, "silent": "http://a:1"},
            "http://a:1 has not answered for 21 s",
        ),
        (
            61.0,
            {"ready_s": 10.0, "answered_s": 60.0, "moved_s": 20.0},
            "requests run, and no token has come for 41 s",
        ),
    ],
)
def test_what_hangs_is_told_from_what_works(waited_s: float, change: dict[str, Any], trouble: str) -> None:
    limits = {"ready_within_s": 60, "unanswered_s": 20, "stalled_s": 40}
    health = GUARD.Health({"apis": ["http://a:1"], **limits})
    vars(health).update({"began_s": 0.0, "answered_s": 0.0, "moved_s": 0.0, "silent": "", **change})
    assert health.trouble(waited_s) == trouble
