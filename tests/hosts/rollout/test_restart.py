"""restart under a steady load, with the real vllm-router and HAProxy before stub engines."""

from __future__ import annotations

import json
import urllib.request
from datetime import datetime, timedelta

from routed_fleet import RoutedFleet
from witness import said


def started(routed: RoutedFleet, host: str, instance: str) -> str:
    """systemd's id of an engine's last start."""
    return said(routed.host(host), f"systemctl show --value -p InvocationID dsv32-{instance}").strip()


def drained(routed: RoutedFleet) -> list[str]:
    text = said(routed.host("h04"), "cat /etc/dsv32/drained.json || echo []")
    return [d["instance"] for d in json.loads(text)]


def test_one_instance_without_a_failed_request(routed: RoutedFleet) -> None:
    before = {h: started(routed, h, i) for h, i in (("h02", "decode-0"), ("h03", "decode-1"))}
    with routed.users() as load:
        done = routed.run("restart", "decode-1", "-m", "a new fan", "--yes", "--json")
    print(f"restart decode-1: {load}")
    assert done.code == 0, done.stdout
    assert not load.failed
    assert started(routed, "h02", "decode-0") == before["h02"]
    assert started(routed, "h03", "decode-1") != before["h03"]
    assert drained(routed) == []
    assert routed.plan().changes == []
    assert done.changes == [("h03", "engine/unit[decode-1]", "RESTART")]


def test_a_pool_one_after_the_other(routed: RoutedFleet) -> None:
    before = {h: started(routed, h, i) for h, i in (("h01", "prefill-0"), ("h04", "prefill-1"))}
    with routed.users() as load:
        done = routed.run("restart", "prefill", "--rolling", "--canary", "--yes", "--json")
    print(f"restart prefill --rolling: {load}")
    assert done.code == 0, done.stdout
    assert not load.failed
    assert all(started(routed, h, i) != before[h] for h, i in (("h01", "prefill-0"), ("h04", "prefill-1")))
    assert routed.plan().changes == []


def test_routers_take_turns(routed: RoutedFleet) -> None:
    first, before = routed.reached(), routed.invocations()
    with routed.users() as load:
        done = routed.run("restart", "router", "-m", "it leaks", "--yes", "--json")
    print(f"restart router: {load}")
    assert done.code == 0, done.stdout
    assert not load.failed
    assert done.changes == [("h04", "router/units", "RESTART")]
    after = routed.invocations()
    assert not set(before.values()) & set(after.values())
    assert routed.reached() != first
    assert routed.plan().changes == []


def test_kv_that_nobody_fetches_is_kept_for_its_lease(routed: RoutedFleet) -> None:
    """As long as the layout says; what holds it has no request any more, and is not idle yet."""
    told = {"kv_transfer_params": {"do_remote_decode": True}, "stub_holds_s": 600}
    body = json.dumps({"model": "tiny", "prompt": [1], "max_tokens": 1, **told}).encode()
    url = f"http://{routed.host('h01').address}:8000/v1/completions"
    urllib.request.urlopen(urllib.request.Request(url, body), timeout=30).close()
    done = routed.run("restart", "prefill-0", "--yes", "--json")
    assert done.code == 0, done.stdout
    assert "KV leases of 5 s are over" in done.stdout
    texts = [(e["kind"], e["text"], e["time"]) for e in routed.events("phase", "finding")]
    (held,) = (time for kind, text, time in texts if kind == "phase" and "KV use 25.0%" in text)
    (over,) = (time for kind, text, time in texts if kind == "finding" and "leases" in text)
    began, ended = (datetime.fromisoformat(time.rstrip("Z")) for time in (held, over))
    assert ended - began >= timedelta(seconds=4)


def test_not_all_of_a_pool_at_once(routed: RoutedFleet) -> None:
    before = started(routed, "h02", "decode-0")
    refused = routed.run("restart", "decode", "--yes", "--json")
    assert refused.code == 6, refused.stdout
    (problem,) = refused.problems
    assert problem["what"] == "pool decode would have 0 instances that serve, its minimum is 1"
    assert "--rolling" in problem["do"]
    assert started(routed, "h02", "decode-0") == before
    assert drained(routed) == []


def test_one_that_does_not_come_up_stays_away_from_requests(routed: RoutedFleet) -> None:
    """The other one serves on, and a later restart gives it back."""
    said(routed.host("h03"), "mv /nvme/environments /nvme/gone")
    try:
        with routed.users() as load:
            done = routed.run("restart", "decode-1", "--yes", "--json")
        print(f"restart of one that cannot start: {load}")
        assert done.code == 1, done.stdout
        assert not load.failed
        assert drained(routed) == ["decode-1"]
    finally:
        said(routed.host("h03"), "mv /nvme/gone /nvme/environments")
    again = routed.run("restart", "decode-1", "--yes", "--json")
    assert again.code == 0, again.stdout
    assert drained(routed) == []
    assert routed.plan().changes == []


def test_nothing_of_that_name(routed: RoutedFleet) -> None:
    done = routed.run("restart", "decode-7", "--yes", "--json")
    assert done.code == 2
    assert done.problems[0]["what"] == "`decode-7` is no instance, pool or host with one of this inventory"
