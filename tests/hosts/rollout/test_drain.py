"""drain and undrain under a steady load, with the real vllm-router and HAProxy."""

from __future__ import annotations

import json
import threading
import urllib.request

from routed_fleet import POOLS, RoutedFleet
from witness import active, said


def generated(routed: RoutedFleet, host: str) -> str:
    """How many requests the engine of a host has had."""
    with urllib.request.urlopen(f"http://{routed.host(host).address}:8000/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    return next(line for line in lines if line.startswith("vllm:generation"))


def slow_request(routed: RoutedFleet, host: str) -> None:
    """Ask an engine itself for something that takes 20 s."""
    body = json.dumps({"model": "tiny", "prompt": [1], "max_tokens": 1, "stub_token_s": 20}).encode()
    url = f"http://{routed.host(host).address}:8000/v1/completions"
    urllib.request.urlopen(urllib.request.Request(url, body), timeout=60).close()


def test_drained_and_given_back_without_a_failed_request(routed: RoutedFleet) -> None:
    with routed.users() as load:
        done = routed.run("drain", "decode-1", "-m", "moving: a new fan", "--yes", "--json")
        assert done.code == 0, done.stdout
        idle = generated(routed, "h03")
        load.for_s(2)
        assert generated(routed, "h03") == idle
    print(f"drain: {load}")
    assert not load.failed
    assert [f["subject"] for f in done.lines("finding")] == ["decode-1"]
    assert active(routed.host("h03"), "dsv32-decode-1") == "active"

    kept = json.loads(said(routed.host("h04"), "cat /etc/dsv32/drained.json"))
    assert [(d["instance"], d["why"]) for d in kept] == [("decode-1", "moving: a new fan")]
    head = "decode-1 is drained: moving: a new fan (root, 20"
    assert head in routed.run("plan").stdout
    assert head in routed.run("status").stdout
    up = routed.up()
    assert (routed.plan().code, up.code, up.changes) == (0, 0, []), f"up leaves it alone: {up.stdout}"
    again = routed.run("drain", "decode-1", "-m", "another reason", "--yes", "--json")
    assert (again.code, again.changes) == (0, []), "drained is drained"

    with routed.users() as load:
        back = routed.run("undrain", "decode-1", "--yes", "--json")
        assert back.code == 0, back.stdout
        load.for_s(2)
        assert generated(routed, "h03") != idle
    print(f"undrain: {load}")
    assert not load.failed
    assert routed.plan().changes == []
    assert "drained" not in routed.run("status").stdout
    assert {run.name.rpartition("-")[2] for run in routed.runs} >= {"drain", "undrain"}


def test_not_below_the_minimum_of_its_pool(routed: RoutedFleet) -> None:
    routed.inventory(pools={**POOLS, "decode": {"hosts": ["h02", "h03"], "minimum": 2}})
    refused = routed.run("drain", "decode-1", "-m", "a fan", "--yes", "--json")
    assert refused.code == 6
    assert refused.problems[0]["what"] == "pool decode would have 1 instances that serve, its minimum is 2"
    assert said(routed.host("h04"), "cat /etc/dsv32/drained.json") == "[]\n"
    told = routed.run("drain", "decode-1", "-m", "a fan", "--below-minimum", "--yes", "--json")
    assert told.code == 0, told.stdout
    assert routed.run("undrain", "decode-1", "--yes").code == 0
    said(routed.host("h02"), "systemctl stop dsv32-guard-decode-0 dsv32-decode-0")
    routed.inventory()
    refused = routed.run("drain", "decode-1", "-m", "a fan", "--yes", "--json")
    assert refused.problems[0]["why"] == "these serve now: decode-1", "one that is down is no help"


def test_what_is_still_begun_is_told(routed: RoutedFleet) -> None:
    asking = threading.Thread(target=slow_request, args=(routed, "h02"))
    asking.start()
    done = routed.run("drain", "decode-0", "-m", "a fan", "--within", "2", "--yes", "--json")
    assert done.code == 1
    assert "1 running, 0 waiting" in done.problems[0]["what"]
    done = routed.run("drain", "decode-0", "-m", "a fan", "--yes", "--json")
    assert done.code == 0, "asked again, it waits on"
    asking.join()
    assert routed.run("undrain", "decode-0", "--yes").code == 0
