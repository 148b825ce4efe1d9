"""A run survives its controller: begun, attached to or picked up by whoever asks for the same one next."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from bench_records import LOAD, METHOD, POINT, document, measurement, sla
from fake_clock import FakeClock
from no_hands import NoHands
from samples import sample

from launcher.bench.reportserved import balance
from launcher.bench.workload import Once
from launcher.flows.bench import bench_of, measure, refuse_silent
from launcher.flows.bench_run import OTHERS, Bench, Record, job_of
from launcher.load.bench import read_telemetry
from launcher.load.data import Data, shipped
from launcher.load.monitoring import settings_problems
from launcher.model.bench import Measured
from launcher.model.facts import Facts, Probe
from launcher.model.inventory import MonitoringSettings
from launcher.model.plan import Op
from launcher.model.problem import LauncherError, LockedError
from launcher.model.run import Event, Listener
from launcher.model.sla import Limit
from launcher.resolve import resolve

PAGE = """\
vllm:prompt_tokens_total{{engine="0"}} {tokens}
vllm:generation_tokens_total{{engine="0"}} {tokens}
vllm:request_queue_time_seconds_sum{{engine="0"}} {queue}
vllm:request_queue_time_seconds_count{{engine="0"}} {count}
"""
BEFORE = PAGE.format(tokens=1000, queue=7, count=100)
AFTER = PAGE.format(tokens=263144, queue=10, count=164)
"""After 64 prompts of 4096 tokens."""


@dataclass(frozen=True)
class Done:
    error: None = None
    ok: bool = True
    failed_index: None = None


@dataclass
class OneHost(NoHands):
    """The client's host, by the agent's answers: its job, other benchmarks there, and what the job left."""

    state: str = "absent"
    ended_s: float = 60.0
    """How long ago."""
    others: list[str] = field(default_factory=list)
    """What runs there, look by look."""
    files: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, Any] = field(default_factory=lambda: {"status": 200})
    done: list[tuple[str, str]] = field(default_factory=list)

    def ask(self, questions: Mapping[str, Sequence[Probe]], *, within_s: float) -> Mapping[str, Facts]:
        return {
            host: Facts(host, {probe: self.answer(probe) for probe in probes})
            for host, probes in questions.items()
        }

    def answer(self, probe: Probe) -> Any:
        if probe == OTHERS:
            return {"exit": 0, "stdout": self.others.pop(0) if self.others else ""}
        if probe.kind == "job":
            return {"state": self.state, "progress": None, "tail": []}
        if probe.kind == "host":
            return {"time": 1000.0 + self.ended_s}
        if probe.kind == "unit":
            return {"since": 1000}
        if probe.kind == "http":
            return self.models
        text = self.files.get(probe.args[0].rpartition("/")[2])
        return {"absent": True} if text is None else {"text": text}

    def do(self, host: str, ops: Sequence[Op], *, listener: Listener, within_s: float, subject: str) -> Done:
        for op in ops:
            name = str(op.args.get("path") or op.args.get("name") or op.args["stop"][0])
            self.done.append((op.verb, name.rpartition("/")[2]))
        return Done()


def left(bench: Bench, *, before: str = BEFORE, after: str = AFTER, **changed: Any) -> dict[str, str]:
    """What a job that ended leaves in its folder."""
    pages = {"before": dict.fromkeys(bench.pages, before), "after": dict.fromkeys(bench.pages, after)}
    told = {"status": 0, "cpu_percent": 12.5, "looks": [], **pages, **changed}
    spec = {"words": bench.line(POINT, Once(1, "run-1", "/out"))}
    files = {"result.json": document("disaggregated"), "told.json": told, "spec.json": spec}
    return {name: json.dumps(content) for name, content in files.items()}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A load on the sandbox's service, its decode over two hosts."""
    level = sla(ttft_ms=Limit(at_most=6000.0))
    wanted = resolve(sample("sandbox-dp2", tmp_path))
    return bench_of(wanted, LOAD, level, METHOD, target="service", seed=1, repeats=1, salt="run")


def measured(host: OneHost, bench: Bench) -> tuple[Measured, list[Event], dict[str, str]]:
    events: list[Event] = []
    kept: dict[str, str] = {}

    def keep(name: str, text: str) -> str:
        kept[name] = text
        return f"runs/{name}"

    return (
        measure(host, bench, POINT, Record(events.append, keep, lambda: False, clock=FakeClock())),
        events,
        kept,
    )


@pytest.mark.parametrize(
    ("state", "verbs", "said"),
    [
        ("absent", ["put", "put", "job", "units", "remove"], "measuring service"),
        ("failed", ["put", "put", "job", "units", "remove"], "measuring service"),
        ("running", ["job", "units", "remove"], "attached to a run that was begun before"),
        ("done", ["units", "remove"], "picked up a run that had ended and was not collected"),
    ],
)
def test_what_runs_is_attached_to_and_what_ended_is_picked_up(
    bench: Bench, state: str, verbs: list[str], said: str
) -> None:
    host = OneHost(state, files=left(bench))
    _, events, _ = measured(host, bench)
    assert [verb for verb, _ in host.done] == verbs
    assert events[0].text == said
    name = bench.name(POINT, 1)
    gone = [("units", f"dsv32-job-{name}.service"), ("remove", name)]
    assert host.done[-2:] == gone, "nobody picks it up again"


def test_runs_are_taken_when_all_of_their_point_are_kept(bench: Bench) -> None:
    """Whoever is cut off between two of them finds the first one there when it asks again."""
    twice = replace(bench, repeats=2)
    host = OneHost(files=left(bench))
    measured(host, twice)
    assert [verb for verb, _ in host.done] == [
        *("put", "put", "job", "put", "put", "job"),
        *("units", "remove", "units", "remove"),
    ]

    cut = OneHost(files=left(bench))
    interrupted = Record(lambda _: None, lambda *_: "", lambda: "job" in dict(cut.done))
    measure(cut, twice, POINT, interrupted)
    assert [verb for verb, _ in cut.done] == ["put", "put", "job"]


def test_what_ended_long_ago_is_measured_anew(bench: Bench) -> None:
    host = OneHost("done", ended_s=METHOD.picked_up_within_s + 1, files=left(bench))
    _, events, _ = measured(host, bench)
    assert [verb for verb, _ in host.done] == ["put", "put", "job", "units", "remove"]
    assert events[0].text == "measuring service"


def test_its_json_is_kept_as_the_client_wrote_it(bench: Bench) -> None:
    point, _, kept = measured(OneHost(files=left(bench)), bench)
    assert {name: json.loads(text) for name, text in kept.items()} == {
        "bench/concurrency-16-seed-1-64-prompts.json": document("disaggregated")
    }
    assert point.verdict == "PASS"
    assert point.results[0].path == "runs/bench/concurrency-16-seed-1-64-prompts.json"


def test_counters_are_what_grew_on_all_addresses_of_a_pool(bench: Bench) -> None:
    point, _, _ = measured(OneHost(files=left(bench)), bench)
    counters = point.results[0].counters
    assert counters["prefill"]["queue_seconds"] == 3
    assert counters["decode"]["queue_seconds"] == 6, "it has an address on each of its two hosts"
    assert counters["decode"]["queued"] == 128


def test_each_rank_of_an_instance_has_its_own_share(bench: Bench, tmp_path: Path) -> None:
    """Decode is two ranks on two hosts, of which the second one got three times the first one's requests."""
    after = dict.fromkeys(bench.pages, AFTER)
    *_, second = (url for url, name in bench.pages.items() if name == "decode-0")
    after[second] = PAGE.format(tokens=787432, queue=10, count=292).replace('"0"', '"1"')
    before = {**dict.fromkeys(bench.pages, BEFORE), second: BEFORE.replace('"0"', '"1"')}
    told = told_with(bench, before=before, after=after)
    point, _, _ = measured(OneHost(files={**left(bench), **told}), bench)
    assert [counters["queued"] for counters in point.results[0].ranks["decode-0"].values()] == [64, 192]
    made = replace(measurement(tmp_path), points=(point,))
    requests = next(row for row in balance(made).rows if row[3] == "requests")
    assert requests[2:] == ("decode-0", "requests", "2", "64", "128", "192", "1.50", "1")


@pytest.mark.parametrize(
    ("change", "doubt"),
    [
        ({"after": {}}, "the counters of prefill-0, decode-0 could not be read"),
        ({"after": dict.fromkeys(("http://10.77.0.11:8000/metrics",), AFTER)}, "the counters of decode-0"),
    ],
)
def test_an_address_that_did_not_answer_leaves_its_instance_out(
    bench: Bench, change: dict[str, Any], doubt: str
) -> None:
    point, _, _ = measured(OneHost(files={**left(bench), **told_with(bench, **change)}), bench)
    assert point.doubts[0].startswith(doubt)


def told_with(bench: Bench, **change: Any) -> dict[str, str]:
    told = json.loads(left(bench)["told.json"])
    return {"told.json": json.dumps({**told, **change})}


def test_an_engine_that_started_anew_is_seen_in_its_counters(bench: Bench) -> None:
    point, _, _ = measured(OneHost(files=left(bench, before=AFTER, after=BEFORE)), bench)
    assert point.doubts[0] == "prefill-0, decode-0 started anew meanwhile"
    assert point.verdict == "CANNOT TELL"


OTHER = "dsv32-job-bench-0123456789ab.service"


def test_two_benchmarks_at_once_would_measure_each_other(bench: Bench) -> None:
    """The lock is ours, so nobody attends the other one: it is waited for, and its result is left."""
    own = f"dsv32-job-{bench.name(POINT, 1)}.service loaded active running"
    host = OneHost(others=[f"{own}\n{OTHER} loaded active running\n"] * 3, files=left(bench))
    _, events, _ = measured(host, bench)
    said = [event.text for event in events if event.kind == "phase"]
    assert said[0].startswith("waiting for a benchmark that nobody attends")
    assert said[1:] == ["measuring service"], "it is told once"
    assert host.others == []
    assert ("units", OTHER) not in host.done


def test_who_does_not_wait_for_another_benchmark_is_told_how_to_end_it(bench: Bench) -> None:
    host = OneHost(others=[f"{OTHER} loaded active running\n"], files=left(bench))
    with pytest.raises(LockedError, match="another benchmark is running") as refused:
        measure(host, bench, POINT, Record(lambda _: None, lambda *_: "", lambda: True))
    assert refused.value.problems[0].do.endswith(f"systemctl stop {OTHER}")
    assert host.done == []


def test_a_client_that_ends_well_without_a_result_is_told(bench: Bench) -> None:
    with pytest.raises(LauncherError, match="left no result"):
        measured(OneHost(files={}), bench)


def test_who_does_not_answer_gets_no_load(bench: Bench) -> None:
    refuse_silent(OneHost(), bench)
    with pytest.raises(LauncherError, match="service does not answer at"):
        refuse_silent(OneHost(models={"error": "connection refused"}), bench)


def test_a_changed_service_is_another_job(bench: Bench, tmp_path: Path) -> None:
    """What was measured before a flag changed is not picked up after it."""
    text = (tmp_path / "inventories/sandbox-dp2.yaml").read_text()
    (tmp_path / "inventories/sandbox-dp2.yaml").write_text(
        f"{text}settings: {{decode: {{max-num-seqs: 3}}}}\n"
    )
    from launcher.load import load

    wanted = resolve(load(tmp_path / "inventories/sandbox-dp2.yaml"))
    changed = bench_of(wanted, LOAD, bench.sla, METHOD, target="service", seed=1, repeats=1, salt="run")
    assert changed.name(POINT, 1) != bench.name(POINT, 1)
    assert bench.name(POINT, 1) == bench.name(POINT, 1)


GPUS = """\
DCGM_FI_PROF_SM_ACTIVE{{gpu="0"}} {active}
DCGM_FI_PROF_SM_ACTIVE{{gpu="1"}} 0.5
"""
NIC = 'node_network_transmit_bytes_total{{device="eth0"}} {sent}\nnode_load1 2\n'


def test_gpus_and_nics_are_told_over_the_run_and_who_did_not_answer_is_named(bench: Bench) -> None:
    bench = replace(bench, telemetry=read_telemetry(Data((shipped(),))), ports={"gpu": 9500, "host": 9100})
    gpu, nic = (f"http://10.77.0.12:{port}/metrics" for port in (9500, 9100))
    looks = [
        [100.0, {gpu: GPUS.format(active=0.1), nic: NIC.format(sent=1000)}],
        [105.0, {gpu: GPUS.format(active=0.9), nic: NIC.format(sent=6000)}],
        [110.0, {gpu: GPUS.format(active=0.2), nic: NIC.format(sent=500)}],
    ]
    point, _, _ = measured(OneHost(files={**left(bench), **told_with(bench, looks=looks)}), bench)
    (result,) = point.results
    tracks = {(t.host, t.series, t.device): t for t in result.tracks}
    first = tracks["h02", "sm_active", "0"]
    assert (first.before, first.values, first.most, first.after) == (0.1, (0.1, 0.9, 0.2), 0.9, 0.2)
    sent = tracks["h02", "nic_sent", "eth0"]
    assert (sent.values, sent.before) == ((1000.0,), None), "it began anew after the second look"
    assert tracks["h02", "load", ""].mean == 2
    assert result.untold == (
        "not measured: no gpu exporter answered on port 9500 of h01, h03",
        "not measured: no host exporter answered on port 9100 of h01, h03",
    )
    job = job_of(bench, POINT, 1)
    spec = json.loads(job.files[f"{job.folder}/spec.json"])
    assert gpu in spec["exporters"]
    assert "node_network_transmit_bytes_total" in spec["series"]


def test_ports_of_exporters_that_are_there_anyway_need_no_monitoring_host() -> None:
    ours, theirs = (MonitoringSettings(places={word: "i.yaml:1"}) for word in ("sla", "gpu_port"))
    assert [p.what for p in settings_problems(ours, None, {})] == ["monitoring has no host"]
    assert not list(settings_problems(theirs, None, {}))
