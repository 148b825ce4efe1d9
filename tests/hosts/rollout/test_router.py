"""Routers replaced, killed and re-pointed under a steady load, with the real vllm-router and HAProxy."""

from __future__ import annotations

import ssl
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from routed_fleet import POOLS, RoutedFleet
from witness import active, said

ONE_DECODE = {**POOLS, "decode": {"hosts": ["h02"]}}


def test_workers_come_and_go_without_a_failed_request(routed: RoutedFleet) -> None:
    first = routed.reached()
    for pools, told in ((ONE_DECODE, "workers -decode-1"), (POOLS, "workers +decode-1")):
        routed.inventory(pools=pools)
        with routed.users() as load:
            before = routed.invocations()
            done = routed.up()
        print(f"{told}: {load}")
        assert done.code == 0, done.stdout
        rows = [c for c in done.lines("change") if c["step"] == "router/units"]
        assert [(r["subject"], r["action"]) for r in rows] == [("router", "RESTART")]
        assert told in rows[0]["because"]
        assert not load.failed
        after = routed.invocations()
        assert before["a"] != after["a"]
        assert before["b"] != after["b"]
        assert routed.reached() != first
        first = routed.reached()
        assert (routed.plan().code, routed.up().changes) == (0, []), "twice equals once"
        assert routed.invocations() == after


def test_another_flag_of_the_router(routed: RoutedFleet) -> None:
    routed.inventory(settings={"router": {"policy": "random"}})
    with routed.users() as load:
        done = routed.up()
    print(f"policy random: {load}")
    assert done.code == 0, done.stdout
    assert "other flags" in next(c for c in done.lines("change") if c["step"] == "router/units")["because"]
    assert not load.failed
    assert "random" in said(routed.host("h04"), "systemctl cat dsv32-router-a dsv32-router-b")


def test_a_router_that_is_killed_takes_only_what_it_had_begun_to_answer(routed: RoutedFleet) -> None:
    with routed.users() as load:
        said(routed.host("h04"), f"systemctl kill -s KILL dsv32-router-{routed.reached()}")
        killed_s = time.monotonic()
        load.for_s(5)
    print(f"router killed: {load}")
    assert {(t.streamed, t.how) for t in load.failed} <= {(True, "cut")}
    assert not load.failed_after(killed_s)
    assert routed.run("status").code == 0, "it is back by itself"


def test_a_router_that_hangs_is_killed_and_only_what_it_had_begun_is_cut(routed: RoutedFleet) -> None:
    with routed.users() as load:
        said(routed.host("h04"), f"systemctl kill -s STOP dsv32-router-{routed.reached()}")
        hung_s = time.monotonic()
        load.for_s(14)
    print(f"router hangs: {load}")
    assert {(t.streamed, t.how) for t in load.failed} <= {(True, "cut")}
    assert not load.failed_after(hung_s)
    assert routed.run("status").code == 0, "it is back by itself"
    assert "took connections and did not answer" in routed.run("diagnose", "--since", "2m").stdout


@pytest.mark.parametrize(("host", "unit"), [("h01", "dsv32-prefill-0"), ("h02", "dsv32-decode-0")])
def test_a_dead_instance_is_out_at_once_and_back_by_itself(routed: RoutedFleet, host: str, unit: str) -> None:
    with routed.users(per_second=20) as load:
        said(routed.host(host), f"systemctl kill -s KILL {unit}")
        killed_s = time.monotonic()
        load.for_s(15)
    print(f"{unit} killed: {load}")
    assert not load.failed_after(killed_s)
    assert not [t for t in load.failed if unit == "dsv32-prefill-0"], "prefill has sent no byte to anybody"
    for url in routed.run("status", "--json").lines("status")[0]["routers"]:
        assert set(url["workers"].values()) == {True}


def test_an_up_that_is_killed_is_finished_by_the_next(routed: RoutedFleet) -> None:
    want = {"router": {"policy": "power_of_two"}}
    for moment_s in (0.3, 1.2, 2.5, 4.0):
        routed.inventory()
        assert routed.up().code == 0
        routed.inventory(settings=want)
        with routed.users() as load:
            begun = routed.start("up", "--yes", "--json")
            routed.wait_for("change-started")
            load.for_s(moment_s)
            begun.process.kill()
            begun.ended()
            load.for_s(1)
            done = routed.up()
        print(f"up killed after {moment_s} s of it: {load}")
        assert done.code == 0, done.stdout
        assert not load.failed
        assert routed.plan().changes == []
        assert [active(routed.host("h04"), f"dsv32-router-{s}") for s in "ab"] == ["active", "active"]


def test_a_router_that_cannot_serve_is_never_reached(routed: RoutedFleet) -> None:
    first = routed.reached()
    routed.inventory(settings={"router": {"policy": "none-such"}})
    with routed.users() as load:
        done = routed.up()
    print(f"a router that does not start: {load}")
    assert done.code == 1
    assert routed.reached() == first
    assert not load.failed


def test_users_need_a_key_and_meet_a_certificate(routed: RoutedFleet) -> None:
    key, pem = "a-key-that-nobody-else-has", routed.folder / "front.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=front", "-days", "2"]
    made = subprocess.run([*words, "-keyout", "-"], capture_output=True, check=True, text=True)
    pem.write_text(made.stdout)
    pem.chmod(0o600)
    sources = {"key": "env:FRONT_KEY", "pem": f"file:{pem}"}
    routed.inventory(front={"api_key": "key", "certificate": "pem"}, secrets=sources)
    done = routed.up(FRONT_KEY=key)
    assert done.code == 0, done.stdout
    assert routed.run("status", FRONT_KEY=key).code == 0
    assert routed.run("plan", FRONT_KEY=key).code == 0

    assert asked(routed, {}) == 401
    assert asked(routed, {"Authorization": f"Bearer {key}x"}) == 401
    assert asked(routed, {"Authorization": f"Bearer {key}"}) == 200
    modes = said(routed.host("h04"), "stat -c %a /etc/dsv32/front.keys /etc/dsv32/front.pem")
    assert modes == "600\n600\n"
    secret = pem.read_text().splitlines()[3]
    shown = "".join(p.read_text() for p in routed.folder.rglob("*") if p.is_file() and p != pem)
    on_host = said(routed.host("h04"), "cat /etc/dsv32/*.cfg /var/log/dsv32/*.jsonl; journalctl -o cat")
    for text in (shown, done.stdout, on_host):
        assert key not in text
        assert secret not in text


def asked(routed: RoutedFleet, headers: dict[str, str]) -> int:
    """The status of a completion over TLS."""
    address, port = routed.entrance
    body = b'{"model": "tiny", "prompt": [1, 2], "max_tokens": 1}'
    told = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(f"https://{address}:{port}/v1/completions", body, told)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(request, timeout=30, context=trusting) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
