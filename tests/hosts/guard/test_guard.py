"""Guards on real hosts: an instance is whole again by itself, in a new epoch, whatever happened to a host."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from stub_fleet import StubFleet
from witness import active, said

HOSTS = ("h02", "h03")
UNIT = "dsv32-decode-0"
GUARD = "dsv32-guard-decode-0"
PID = f"systemctl show -P MainPID {UNIT}"
LIVES = "find /var/lib/stub-lives -name 'decode-0,*' -printf '%f,%T@\\n' 2>/dev/null"


def word(stubs: StubFleet, name: str) -> dict[str, Any]:
    """What the guard of a host says."""
    text = said(stubs.host(name), "cat /run/dsv32/guard-decode-0.json 2>/dev/null")
    return dict(json.loads(text or "{}"))


def epochs(stubs: StubFleet) -> set[int]:
    """The epochs in which a process runs and answers."""
    found = set()
    for name in HOSTS:
        try:
            url = f"http://{stubs.host(name).address}:8000/health"
            with urllib.request.urlopen(url, timeout=3):
                told = word(stubs, name)
                found.add(told["epoch"] if told.get("phase") == "run" else 0)
        except OSError:
            found.add(0)
    return found


def await_epoch(stubs: StubFleet, *, after: int, within_s: float = 180) -> int:
    """Wait until all hosts serve in one later epoch; its number."""
    until_s = time.monotonic() + within_s
    while True:
        now = epochs(stubs)
        if len(now) == 1 and min(now) > after:
            return min(now)
        assert time.monotonic() < until_s, [word(stubs, name) for name in HOSTS]
        time.sleep(0.3)


def overlaps(stubs: StubFleet) -> list[tuple[list[str], list[str]]]:
    """Lives of two epochs that overlap, by what the processes themselves left behind."""
    lives = [line.split(",")[1:] for name in HOSTS for line in said(stubs.host(name), LIVES).splitlines()]
    assert len({epoch for epoch, _, _ in lives}) > 1
    return [
        (one, other)
        for one in lives
        for other in lives
        if int(one[0]) < int(other[0]) and float(one[2]) > float(other[1])
    ]


def order(stubs: StubFleet, name: str) -> None:
    """Start anew, as the launcher orders it."""
    path = "/var/lib/dsv32/guard/decode-0.order"
    old = json.loads(said(stubs.host(name), f"cat {path}"))
    new = json.dumps({**old, "run": "another", "key": "0" * 64})
    stubs.host(name).exec("sh", "-c", f"cat >{path}~ && mv {path}~ {path}", stdin=new)


def kill_engine(stubs: StubFleet, name: str) -> None:
    said(stubs.host(name), f"systemctl kill --kill-who=main -s KILL {UNIT}")


def stop_engine_answering(stubs: StubFleet, name: str) -> None:
    time.sleep(5)  # its guard has seen it ready by then: only what was can be found not to answer
    said(stubs.host(name), f"systemctl kill --kill-who=main -s STOP {UNIT}")


def freeze(stubs: StubFleet, name: str) -> None:
    stubs.host(name).freeze()
    time.sleep(8)
    stubs.host(name).freeze(False)


def cut(stubs: StubFleet, name: str) -> None:
    stubs.host(name).cut(silent=True)
    time.sleep(8)
    stubs.host(name).heal()


def reboot(stubs: StubFleet, name: str) -> None:
    stubs.host(name).kill()
    stubs.host(name).start()


def power_loss(stubs: StubFleet, name: str) -> None:
    for host in HOSTS:
        stubs.host(host).kill()
    for host in HOSTS:
        stubs.host(host).start()


FAULTS: dict[Callable[[StubFleet, str], None], str] = {
    kill_engine: "its process was killed by signal 9",
    stop_engine_answering: "has not answered for",
    freeze: "nothing was heard from",
    cut: "nothing was heard from",
    reboot: "",
    power_loss: "its host was started anew",
}


@pytest.fixture
def epoch(stubs: StubFleet) -> int:
    """Everything serves, in this epoch."""
    stubs.serve()
    # a new order: no earlier try counts any more, and the lives of this test begin
    assert stubs.run("down", "--limit", "decode-0", "--yes").code == 0
    for name in HOSTS:
        said(stubs.host(name), "rm -rf /var/lib/stub-lives/*")
    stubs.serve()
    return await_epoch(stubs, after=0)


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_whole_again_by_itself(
    stubs: StubFleet, epoch: int, fault: Callable[[StubFleet, str], None], name: str
) -> None:
    fault(stubs, name)
    began_s = time.monotonic()
    now = await_epoch(stubs, after=epoch)
    print(f"{fault.__name__} of {name}: whole again {time.monotonic() - began_s:.1f} s after its end")
    assert overlaps(stubs) == []
    ends = [end for host in HOSTS for end in word(stubs, host)["ends"] if end["epoch"] == epoch]
    assert any(FAULTS[fault] in end["why"] for end in ends), ends
    assert stubs.plan().changes == [], "what recovered by itself is as wanted"
    shown = stubs.run("status").stdout
    assert f"decode-0  epoch {now}, run" in shown
    assert f"epoch {epoch} ended" in shown


def test_the_end_of_a_guard_touches_nothing(stubs: StubFleet, epoch: int) -> None:
    before = [said(stubs.host(name), PID) for name in HOSTS]
    for name in HOSTS:
        said(stubs.host(name), f"systemctl kill --kill-who=main -s KILL {GUARD}")
    time.sleep(10)
    assert epochs(stubs) == {epoch}
    assert [said(stubs.host(name), PID) for name in HOSTS] == before
    kill_engine(stubs, "h02")
    await_epoch(stubs, after=epoch)


def test_an_order_that_half_of_the_hosts_got_changes_nothing(stubs: StubFleet, epoch: int) -> None:
    before = [said(stubs.host(name), PID) for name in HOSTS]
    order(stubs, "h03")
    time.sleep(10)
    assert epochs(stubs) == {epoch}
    assert [said(stubs.host(name), PID) for name in HOSTS] == before
    order(stubs, "h02")
    now = await_epoch(stubs, after=epoch)
    assert word(stubs, "h02")["order"] == "another", now
    assert overlaps(stubs) == []


def test_it_gives_up_and_says_so(stubs: StubFleet, epoch: int) -> None:
    for _ in range(3):
        epoch = await_epoch(stubs, after=epoch - 1)
        kill_engine(stubs, "h03")
        epoch += 1
    until_s = time.monotonic() + 60
    while not all(word(stubs, name).get("gave_up") for name in HOSTS):
        assert time.monotonic() < until_s
        time.sleep(0.3)
    time.sleep(8)
    assert [active(stubs.host(name), UNIT) for name in HOSTS] == ["inactive", "failed"]
    assert "gives up after 3 tries" in said(stubs.host("h03"), f"journalctl -u {GUARD} -p crit -o cat")
    shown = stubs.run("status")
    assert shown.code == 1
    assert "gave up after 3 tries" in shown.stdout
    assert "on h03: its process was killed by signal 9" in shown.stdout
    assert {(host, action) for host, _, action in stubs.plan().changes} == {(h, "START") for h in HOSTS}
    stubs.serve()
    assert not word(stubs, "h02")["gave_up"]
