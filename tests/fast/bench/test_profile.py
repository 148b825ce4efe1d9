"""Traces to shares: nested events counted once, idle between them, and a recorded one read piece by piece."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from no_hands import NoHands
from samples import sample

from launcher.bench.profile import covered_us, time_of
from launcher.flows.profile import Asked, asked_of, captured, chosen, fetched
from launcher.load.data import Data, shipped
from launcher.load.traces import read_capture, read_trace
from launcher.model.facts import Facts, Probe
from launcher.model.problem import InputError, LauncherError
from launcher.model.trace import TraceEvent
from launcher.resolve import resolve

CAPTURE = read_capture(Data((shipped(),)))
RECORDED = Path(__file__).parent / "cpu-rank.pt.trace.json.gz"


def event(
    name: str, begun: float, lasted: float, *, of: str = "cpu_op", lane: tuple[str, str] = ("1", "1")
) -> TraceEvent:
    return TraceEvent(lane, of, name, begun, lasted)


def test_nested_work_is_counted_once_and_named_by_what_is_around_it() -> None:
    found = time_of(
        "rank",
        [
            event("vllm/fused_moe/layer.py(10): forward", 0, 5000, of="python_function"),
            event("aten::linear", 1000, 3000),
            event("aten::mm", 2000, 1000),
            event("gloo:all_reduce", 3000, 500),
            event("aten::add", 6000, 1000),
        ],
        CAPTURE,
    )
    assert (found.of, found.window_ms, found.idle_ms) == ("CPU", 7.0, 3.0)
    assert found.families_ms == {"moe": 2.5, "communication": 0.5, "other": 1.0}
    assert found.top[0] == ("aten::linear", 1.5, 1)


def test_of_a_trace_with_a_gpu_its_kernels_are_the_work() -> None:
    stream, other = ("0", "7"), ("0", "20")
    found = time_of(
        "rank",
        [
            event("aten::mm", 0, 10_000),
            event("ncclDevKernel_AllReduce", 1000, 4000, of="kernel", lane=other),
            event("sparse_attn_fwd_kernel", 2000, 2000, of="kernel", lane=stream),
            event("fused_moe_kernel", 4000, 1000, of="kernel", lane=stream),
        ],
        CAPTURE,
    )
    assert (found.of, found.window_ms, found.idle_ms) == ("GPU", 10.0, 6.0)
    assert found.families_ms == {"communication": 4.0, "attention": 2.0, "moe": 1.0}


def test_a_scope_within_itself_counts_once() -> None:
    scope = "vllm/v1/worker/dp_utils.py(190): coordinate_batch_across_dp"
    found = time_of(
        "rank",
        [
            event(scope, 0, 2000, of="python_function"),
            event(f"{scope} inner", 500, 1000, of="python_function"),
            event("gpu_model_runner: eplb", 3000, 1000, of="user_annotation"),
            event("aten::mm", 0, 4000),
        ],
        CAPTURE,
    )
    assert found.scopes_ms == {"coordinate_batch_across_dp": 2.0, "eplb step": 1.0}


def test_what_overlaps_is_covered_once() -> None:
    assert covered_us([event("a", 0, 10), event("b", 5, 10), event("c", 20, 5)]) == 20


def test_a_recorded_trace_of_a_cpu_engine() -> None:
    """vLLM 0.32 on a CPU in the sandbox, shrunk to a part of its events."""
    found = time_of("cpu", read_trace(RECORDED), CAPTURE)
    assert found.of == "CPU"
    assert 0 < found.idle_ms < found.window_ms
    assert {"attention", "moe", "other"} <= found.families_ms.keys()
    assert found.families_ms["moe"] > 0
    assert sum(found.families_ms.values()) <= found.window_ms + 1


def trace(events: list[dict[str, Any]]) -> str:
    return json.dumps({"schemaVersion": 1, "traceEvents": events, "traceName": "t"})


def test_a_trace_is_read_whatever_its_pieces_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("launcher.load.traces.PIECE", 7)
    path = tmp_path / "t.json"
    flow = {"ph": "s", "name": "ac2g", "ts": 1}
    path.write_text(trace([{"ph": "X", "name": "a]}", "cat": "cpu_op", "ts": 1, "dur": 2.5, "pid": 1}, flow]))
    assert [(e.name, e.lasted_us) for e in read_trace(path)] == [("a]}", 2.5)]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (gzip.compress(trace([{"ph": "X"}] * 999).encode())[:-20], "this is no whole trace"),
        (trace([{"ph": "X", "name": "a"}]).encode()[:-40], "it ends in the middle"),
        (b"{}", "it has no"),
        (b"\x1f\x8b nothing", "this is no whole trace"),
    ],
)
def test_what_is_no_whole_trace_is_said_to_be_none(content: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / ("t.json.gz" if content[:2] == b"\x1f\x8b" else "t.json")
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        list(read_trace(path))
    assert why in error.value.problems[0].what


def test_a_profiler_that_is_off_is_told_how_to_be_on(tmp_path: Path) -> None:
    wanted = resolve(sample("sandbox-single", tmp_path))
    engine = wanted.wish.profile.engine
    assert wanted.deployment
    assert engine
    with pytest.raises(InputError) as error:
        asked_of(wanted.deployment, engine, "decode-0")
    (problem,) = error.value.problems
    assert problem.what == "the profiler of decode-0 is not on"
    assert (
        "settings: {decode: {profiler-config: {profiler: torch, torch_profiler_dir: /nvme/traces,"
        in problem.do
    )
    assert 'environment: {decode: {VLLM_CUSTOM_SCOPES_FOR_PROFILING: "1"}}' in problem.do


@dataclass
class OneHost(NoHands):
    """A host whose engine records, by its agent's answers."""

    content: bytes = b""
    agrees: int = 200
    posted: list[str] = field(default_factory=list)

    def ask(self, questions: Mapping[str, Sequence[Probe]], *, within_s: float) -> Mapping[str, Facts]:
        return {host: Facts(host, {p: self.answer(p) for p in probes}) for host, probes in questions.items()}

    def answer(self, probe: Probe) -> Any:
        if probe.kind == "http":
            path = "/" + probe.args[1].rpartition("/")[2]
            self.posted.append(path)
            return {"status": self.agrees if path == "/start_profile" else 200}
        words = probe.args[0]
        if words[0] == "find":
            written = "/stop_profile" in self.posted
            return {"stdout": f"{len(self.content)} /nvme/traces/dp0_rank0.1.pt.trace.json.gz\n" * written}
        begin, size = int(words[-1]) - 1, CAPTURE.piece_kib << 10
        return {"stdout": base64.b64encode(self.content[begin : begin + size]).decode()}


def asked_for(folder: Path) -> Asked:
    wanted = resolve(sample("sandbox-single", folder))
    engine = wanted.wish.profile.engine
    assert wanted.deployment
    assert engine
    assert engine.profiler
    return Asked(wanted.deployment.instances[0], engine.profiler, "/nvme/traces")


def test_what_was_recorded_comes_whole(tmp_path: Path) -> None:
    host = OneHost(RECORDED.read_bytes())
    waited: list[str] = []
    left = captured(
        host,
        asked_for(tmp_path),
        CAPTURE,
        wait=lambda: waited.extend(host.posted),
        listener=lambda _: None,
    )
    assert (waited, host.posted) == (["/start_profile"], ["/start_profile", "/stop_profile"])
    (trace,) = chosen(left, "* dp0_*")
    assert trace.label == "h01 dp0_rank0"
    assert fetched(host, trace, CAPTURE, tmp_path).read_bytes() == host.content
    with pytest.raises(InputError, match="no trace fits"):
        chosen(left, "* dp9_*")
    with pytest.raises(LauncherError, match="at most 256 are fetched"):
        fetched(host, replace(trace, size=300 << 20), CAPTURE, tmp_path)


def test_what_does_not_begin_does_not_go_on_either(tmp_path: Path) -> None:
    """A capture that somebody's death left open is closed so, too: the engine refuses a second one."""
    host = OneHost(agrees=500)
    with pytest.raises(LauncherError, match="answers /start_profile with 500"):
        captured(host, asked_for(tmp_path), CAPTURE, wait=lambda: None, listener=lambda _: None)
    assert host.posted[-1] == "/stop_profile"
