"""A service on three hosts, its decode instance over two of them: it serves, fails and comes back as a whole.

The tests stand in the order of a service's life. What the launcher says is held against the hosts' systemd
and the engines' own counters.
"""

from __future__ import annotations

import json
import time
import urllib.error
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from engine_hosts import API_PORT, FRONT_PORT, LEADER, PEER, PREFILL, Ran, Service

PAIRS = {f"prefill-0@{PREFILL} → decode-0@{host}" for host in (LEADER, PEER)}
DECODE, ROUTER = "dsv32-decode-0.service", "dsv32-router-a.service"
GUARD = "dsv32-guard-decode-0.service"
SETTLE_S = 10
"""Engines publish their counters a second after an answer, and a rank's end is seen by its peers in a few."""
REPORT_S = 15
"""How long after a death the launcher may take to name it."""
MAX_LEN = 512
STRICT = """\
about: One limit that nothing keeps, and one that everything does.
limits:
  ttft_ms: {at_most: 0.001}
  tokens_per_s: {at_least: 0.001}
"""


@pytest.fixture
def serving(service: Service, first_up: Ran) -> Service:
    """The service with everything up, whatever a test before has broken."""
    if service.launch("status").exit:
        assert service.up().exit == 0
    return service


def eventually(holds: Callable[[], bool], within_s: float) -> bool:
    """Whether it holds before the time is over."""
    until = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.2)
    return True


def prompts(count: int) -> Iterator[str]:
    """Texts that begin differently: no prefix of one is in a cache of another."""
    return (f"{n} " + "prefill here, decode there: " * 3 for n in range(count))


def assert_each_pair_moved_kv(ran: Ran) -> None:
    told = {f["subject"]: f for f in ran.of("finding")}
    assert told.keys() >= PAIRS
    for pair in PAIRS:
        assert told[pair]["severity"] == "OK"
        assert "through the router: " in told[pair]["text"]
        assert "bytes of KV moved" in told[pair]["text"]


def decode_ended(service: Service) -> bool:
    states = [service.show(host, DECODE, "ActiveState")["ActiveState"] for host in (LEADER, PEER)]
    return set(states) <= {"inactive", "failed"}


def kill_peer(service: Service) -> None:
    """End the main process on one of the two hosts, and wait until the other has seen it.

    It sees that at its next request, for which it needs the dead one's experts (vLLM 0.32). No guard is
    left, so that what the engine itself does can be seen.
    """
    for host in (LEADER, PEER):
        service.host(host).exec("systemctl", "stop", GUARD)
    service.host(PEER).exec("systemctl", "kill", "--signal=KILL", "--kill-whom=main", DECODE)
    with pytest.raises(urllib.error.HTTPError):
        service.complete(LEADER, API_PORT, "is anybody there?")
    assert eventually(lambda: decode_ended(service), 60)


def test_bare_hosts_serve_after_one_command(first_up: Ran) -> None:
    assert (first_up.exit, first_up.of("problem")) == (0, [])
    assert_each_pair_moved_kv(first_up)


def test_prompts_are_computed_by_prefill_alone(serving: Service) -> None:
    before = {host: serving.metrics(host) for host in (PREFILL, LEADER, PEER)}
    answers = [serving.complete(PREFILL, FRONT_PORT, prompt) for prompt in prompts(6)]
    prompt_tokens = sum(a["usage"]["prompt_tokens"] for a in answers)
    grown: Mapping[str, Mapping[str, float]] = {}

    def transferred() -> float:
        source = "vllm:prompt_tokens_by_source_total{external_kv_transfer}"
        return sum(grown[host][source] for host in (LEADER, PEER))

    def published() -> bool:
        nonlocal grown
        now = {host: serving.metrics(host) for host in before}
        grown = {host: {n: v - before[host].get(n, 0) for n, v in now[host].items()} for host in now}
        return transferred() >= prompt_tokens

    assert eventually(published, SETTLE_S), grown
    assert transferred() == prompt_tokens
    assert grown[PREFILL]["vllm:generation_tokens_total"] == len(answers)
    for host in (LEADER, PEER):
        assert grown[host]["vllm:nixl_bytes_transferred_sum"] > 0
        assert grown[host]["vllm:prompt_tokens_by_source_total{local_compute}"] == 0
        assert grown[host].get("vllm:nixl_num_failed_transfers_total", 0) == 0


def test_both_decode_hosts_answer_alike(serving: Service) -> None:
    """Greedy, from the same KV, with experts on both hosts: what arrives wrong at one makes it differ.

    No single engine can be the measure: vLLM's CPU kernels (0.32.0) give a token another result when it is
    computed with its prompt than when it is alone, and decode computes the last of a prompt alone.
    """

    def answered() -> dict[str, float]:
        return {host: serving.metrics(host)["vllm:request_success_total"] for host in (LEADER, PEER)}

    before = answered()
    for prompt in prompts(3):
        one, other = (serving.complete(PREFILL, FRONT_PORT, prompt, max_tokens=16) for _ in range(2))
        assert one["choices"][0]["text"] == other["choices"][0]["text"]
    each_had_half = {host: count + 3 for host, count in before.items()}
    assert eventually(lambda: answered() == each_had_half, SETTLE_S), (before, answered())


def test_nothing_is_left_to_change(serving: Service) -> None:
    plan = serving.launch("plan")
    assert (plan.exit, plan.of("change")) == (0, [])


def test_status_shows_every_rank_and_endpoint(serving: Service) -> None:
    ran = serving.launch("status")
    (status,) = ran.of("status")
    assert ran.exit == 0
    seen = {(p["instance"], p["host"]): p for p in status["processes"]}
    assert seen.keys() == {("prefill-0", PREFILL), ("decode-0", LEADER), ("decode-0", PEER)}
    for process in seen.values():
        assert (process["active"], process["healthy"]) == ("active", True)
        assert all(process["ports"].values()), process
    ranks = [r["rank"] for host in (LEADER, PEER) for r in seen["decode-0", host]["ranks"]]
    assert ranks == ["0", "1"]
    assert [router["reached"] for router in status["routers"]].count(True) == 1
    for router in status["routers"]:
        assert router["pools"] == {"prefill": [1, 1], "decode": [2, 2]}
        assert set(router["workers"].values()) == {True}
    assert [front["answers"] for front in status["fronts"]] == [True]


def test_logs_of_all_hosts_come_in_time_order(serving: Service) -> None:
    lines = serving.launch("logs", "decode-0").of("line")
    times = [line["time_s"] for line in lines]
    assert {line["host"] for line in lines} == {LEADER, PEER}
    assert times == sorted(times)


def test_a_load_outlives_its_controller_and_is_held_against_a_level(serving: Service, tmp_path: Path) -> None:
    """One run of the real client: begun by a controller that dies, finished for the next one."""
    (tmp_path / "configs/slas").mkdir(parents=True)
    (tmp_path / "configs/slas/strict.yaml").write_text(STRICT)
    load = ("smoke", "--sla", "strict", "--data-dir", str(tmp_path))
    serving.killed("warm-up", "bench", *load)
    ran = serving.launch("bench", *load)
    assert (ran.exit, ran.of("problem")) == (5, [])
    assert ran.of("event")[0]["text"] == "attached to a run that was begun before"

    (point,) = ran.of("point")
    assert (point["summary"]["verdict"], point["doubts"]) == ("FAIL", [])
    verdicts = {judged["limit"]: judged["verdict"] for judged in point["judgements"]}
    assert verdicts == {"ttft_ms": "FAIL", "tokens_per_s": "PASS"}

    (result,) = point["results"]
    written = json.loads((serving.folder / result["path"]).read_text())
    assert (written["completed"], written["failed"]) == (16, 0)
    assert result["figures"].items() <= written.items(), "to the digit"
    (kept,) = ran.of("bench")
    document = json.loads((serving.folder / kept["path"]).read_text())
    assert document["target"] == "service"
    assert document["points"] == [{k: v for k, v in point.items() if k != "type"}], "one shape"
    assert 0 < result["counters"]["decode"]["kv_transfers"] <= 16
    assert result["counters"]["prefill"]["generation_tokens"] <= 16, "the warm-up is not counted"


def test_one_process_that_dies_takes_its_instance_along(serving: Service) -> None:
    """vLLM's other ranks leave with exit status 0, and that is no less a death."""
    kill_peer(serving)
    assert serving.show(LEADER, DECODE, "Result", "ExecMainStatus") == {
        "Result": "success",
        "ExecMainStatus": "0",
    }

    ran = serving.launch("status")
    (status,) = ran.of("status")
    down = {p["host"]: p for p in status["processes"] if p["active"] != "active"}
    assert ran.exit == 1
    assert down.keys() == {LEADER, PEER}
    assert "status=9/KILL" in down[PEER]["note"]
    assert f"[{serving.host(PEER).address}]" in down[LEADER]["note"]

    changes = serving.launch("plan").of("change")
    assert {(c["host"], c["action"], c["subject"]) for c in changes} == {
        (host, "START", unit) for host in (LEADER, PEER) for unit in (GUARD, DECODE)
    }


def test_an_engine_that_dies_while_it_starts_is_named(service: Service, first_up: Ran) -> None:
    """vLLM refuses a cache that cannot hold one request late: when the model is loaded."""
    prefill = service.show(PREFILL, "dsv32-prefill-0.service", "MainPID", "ActiveEnterTimestamp")
    ran = service.up(settings="{decode: {kv-cache-memory-bytes: 1048576}}")
    assert ran.exit == 1

    (failed,) = [line for line in ran.lines if line.value.get("kind") == "instance-failed"]
    ends = [service.show(host, DECODE, "ExecMainExitTimestamp") for host in (LEADER, PEER)]
    # systemd forgets that of a unit which was stopped
    died_s = min(float(end["ExecMainExitTimestamp"][1:]) for end in ends if end["ExecMainExitTimestamp"])
    assert failed.time_s < died_s + REPORT_S

    problem = ran.of("problem")[0]
    assert problem["where"] in {f"{host}, unit {DECODE}" for host in (LEADER, PEER)}
    assert "ValueError: " in problem["why"], problem
    assert f"max seq len ({MAX_LEN})" in problem["why"], problem

    assert decode_ended(service)
    assert service.show(PREFILL, "dsv32-prefill-0.service", *prefill) == prefill


def test_it_comes_back_behind_the_same_router(service: Service, first_up: Ran) -> None:
    """The router stays; prefill and the new decode ranks meet anew."""
    if not decode_ended(service):
        kill_peer(service)
    router = service.show(PREFILL, ROUTER, "MainPID")
    ran = service.up()
    assert (ran.exit, ran.of("problem")) == (0, [])
    assert_each_pair_moved_kv(ran)
    assert service.show(PREFILL, ROUTER, "MainPID") == router


def test_down_leaves_only_starts(serving: Service) -> None:
    assert serving.launch("down", "--yes").exit == 0
    changes = serving.launch("plan").of("change")
    assert {(c["host"], c["action"], c["subject"]) for c in changes} == {
        (PREFILL, "START", "dsv32-prefill-0.service"),
        (LEADER, "START", DECODE),
        (PEER, "START", DECODE),
        (PREFILL, "START", "router"),
        (PREFILL, "START", "dsv32-front.service"),
    }
