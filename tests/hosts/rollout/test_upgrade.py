"""upgrade under a steady load: one that cannot start, or is slower, goes back by itself; a good one stays."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from routed_fleet import RoutedFleet
from stub_fleet import DATA
from witness import said

from launcher.load.data import shipped

ENGINES = {"prefill-0": "h01", "prefill-1": "h04", "decode-0": "h02", "decode-1": "h03"}
LOOK_EVERY_S = 0.3
LOAD = """\
about: A few short requests.
input_tokens: 20
output_tokens: 1
prompts: 8
concurrency: [2]
"""
SLOW_TOKEN_S = 0.5
WORSE_BY = 5.0
"""A share that a busy machine does not add; a first token comes after some 15 ms where nothing is slow."""


@pytest.fixture
def data(routed: RoutedFleet, tmp_path: Path) -> Path:
    """The stubs' data with three more stacks of another engine version; one engine is no word of the stub's,
    and one takes longer for each token."""
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder)
    stacks, engines = folder / "configs/stacks", folder / "configs/engines"
    text = (stacks / "stub-routed.yaml").read_text().replace('engine_version: "1.0"', 'engine_version: "1.1"')
    (stacks / "stub-next.yaml").write_text(text)
    (stacks / "stub-broken.yaml").write_text(text.replace("engine: stub", "engine: stub-broken"))
    (stacks / "stub-slow.yaml").write_text(text.replace("engine: stub", "engine: stub-slow"))
    based = "about: {}\nbased_on: stub\ncommand: [stub, {}]\n"
    (engines / "stub-broken.yaml").write_text(based.format("Does not start.", "none"))
    slow = based.format("Takes its time.", f"engine, --stub-token-s, '{SLOW_TOKEN_S}'")
    (engines / "stub-slow.yaml").write_text(slow)
    (folder / "configs/workloads").mkdir()
    (folder / "configs/workloads/few.yaml").write_text(LOAD)
    method = (shipped() / "configs/bench.yaml").read_text().replace("settle_s: 2 ", "settle_s: 0 ")
    (folder / "configs/bench.yaml").write_text(
        re.sub("worse_by: .*", f"worse_by: {{ttft_ms: {WORSE_BY}}}", method)
    )
    stocked = routed.sandbox.gpfs / "stacks"
    for name in ("stub-next", "stub-slow", "stub-broken"):
        shutil.copytree(stocked / "stub-routed", stocked / name, dirs_exist_ok=True)
    return folder


@contextmanager
def least_healthy(routed: RoutedFleet) -> Iterator[dict[str, int]]:
    """The fewest instances of each pool that were healthy at once, by asking them all again and again."""
    least, stop = {"prefill": 2, "decode": 2}, threading.Event()

    def healthy(host: str) -> bool:
        asked = http.client.HTTPConnection(routed.host(host).address, 8000, timeout=2)
        try:
            asked.request("GET", "/health")
            return asked.getresponse().status == 200
        except OSError:
            return False
        finally:
            asked.close()

    def watch() -> None:
        while not stop.wait(LOOK_EVERY_S):
            up = [name for name, host in ENGINES.items() if healthy(host)]
            for pool in least:
                least[pool] = min(least[pool], sum(name.startswith(pool) for name in up))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield least
    finally:
        stop.set()
        watching.join()


def lives(routed: RoutedFleet) -> dict[str, str]:
    """systemd's id of the last start of each engine."""
    show = "systemctl show --value -p InvocationID dsv32-{}"
    return {name: said(routed.host(h), show.format(name)).strip() for name, h in ENGINES.items()}


def environments(routed: RoutedFleet) -> set[str]:
    """Where engines run from, as their units say."""
    show = "grep -o '/environments/[a-z-]*' /etc/systemd/system/dsv32-{}.service | sort -u"
    return {said(routed.host(h), show.format(name)).strip().split("/")[-1] for name, h in ENGINES.items()}


def test_one_that_cannot_start_goes_back_and_a_good_one_stays(routed: RoutedFleet, data: Path) -> None:
    inventory = routed.folder / "stub.yaml"
    before, written = lives(routed), inventory.read_text()
    with routed.users() as load, least_healthy(routed) as least:
        done = routed.run("upgrade", "--to", "stub-broken", "-m", "try it", "--yes", "--json", data=data)
    print(f"to a stack that cannot start: {load}; at least {least} healthy")
    assert done.code == 1, done.stdout + done.stderr
    assert not load.failed
    assert min(least.values()) >= 1, "never below the minimum"
    assert inventory.read_text() == written
    assert environments(routed) == {"stub-routed"}
    after = lives(routed)
    assert sum(after[name] == before[name] for name in ENGINES) == 2, "half of it never moved"
    assert routed.plan(data=data).changes == []
    (told,) = done.lines("comparison")
    assert told["move"]["apart"] == ["vLLM 1.0 → 1.1"]
    assert (told["move"]["first"], told["move"]["rest"]) == (
        ["prefill-0", "decode-0"],
        ["prefill-1", "decode-1"],
    )

    slower_one_goes_back(routed, data)
    gated = ("--gate", "few", "-m", "and this", "--yes", "--json")
    with routed.users() as load, least_healthy(routed) as least:
        done = routed.run("upgrade", "--to", "stub-next", *gated, data=data)
    print(f"to a good stack: {load}; at least {least} healthy")
    assert done.code == 0, done.stdout + done.stderr
    assert "PASS against" in next(f["text"] for f in done.lines("finding") if f["subject"] == "gate")
    assert not load.failed
    assert min(least.values()) >= 1
    assert environments(routed) == {"stub-next"}
    assert inventory.read_text() == written.replace('"stack": "stub-routed"', '"stack": "stub-next"')
    assert json.loads(said(routed.host("h04"), "cat /etc/dsv32/drained.json")) == []
    assert routed.plan(data=data).changes == []
    again = routed.run("upgrade", "--to", "stub-next", "--yes", "--json", data=data)
    assert again.code == 2, "the inventory says so already"
    red_hosts_keep_it(routed, data)


def slower_one_goes_back(routed: RoutedFleet, data: Path) -> None:
    """It serves, and is worse under a load: all of it goes back, and hosts remember why."""
    inventory = routed.folder / "stub.yaml"
    written = inventory.read_text()
    gated = ("--gate", "few", "-m", "try it", "--yes", "--json")
    with routed.users() as load, least_healthy(routed) as least:
        done = routed.run("upgrade", "--to", "stub-slow", *gated, data=data)
    print(f"to a slow stack: {load}; at least {least} healthy")
    assert done.code == 5, done.stdout + done.stderr
    assert not load.failed
    assert min(least.values()) >= 1
    (problem,) = done.problems
    print(problem["what"])
    assert problem["what"].startswith("gate: concurrency 2: ttft_ms mean ")
    assert inventory.read_text() == written
    assert environments(routed) == {"stub-routed"}
    assert routed.plan(data=data).changes == []
    newest = routed.run("revisions", "--json", data=data).lines("revision")[0]
    assert (newest["result"], newest["stack"]) == ("bad", "stub-slow")
    assert newest["fault"].startswith("concurrency 2: ttft_ms mean ")


def red_hosts_keep_it(routed: RoutedFleet, data: Path) -> None:
    """Whatever moves a service begins nothing where a check is red that `up` refuses with."""
    inventory = routed.folder / "stub.yaml"
    before, written = lives(routed), inventory.read_text()
    routed.host("h03").exec("ip", "link", "set", "eth0", "mtu", "1400")
    try:
        for words in (["rollback"], ["upgrade", "--to", "stub-routed"], ["scale", "decode=1"]):
            done = routed.run(*words, "--yes", "--json", data=data)
            assert done.code == 1, done.stdout
            assert {p["more"].rpartition(" ")[2] for p in done.problems} == {"peers-mtu"}, words
    finally:
        routed.host("h03").exec("ip", "link", "set", "eth0", "mtu", "1500")
    assert (lives(routed), inventory.read_text()) == (before, written)
