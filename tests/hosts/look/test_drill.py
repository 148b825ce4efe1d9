"""Drills on real hosts: what they break is found and whole again; all else stays as it was."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from routed_fleet import RoutedFleet
from stub_fleet import DATA, Done
from witness import active, said


def drill(routed: RoutedFleet, *words: str, data: Path = DATA) -> Done:
    """Drills, told in JSON; their sandbox is the test's."""
    return routed.run("drill", *words, "--json", data=data, DSV32_SANDBOX_DIR=str(routed.sandbox.directory))


def outcomes(done: Done) -> dict[str, dict[str, Any]]:
    return {o["drill"]: o for o in done.lines("outcome")}


def test_a_runbook_ends_what_a_drill_has_planted(routed: RoutedFleet) -> None:
    done = drill(routed, "clock-wrong", "routers-stopped")
    told = outcomes(done)
    assert done.code == 0, done.stdout + done.stderr
    print({name: (o["noticed_s"], o["seen_s"], o["whole_s"], o["requests"]) for name, o in told.items()})
    assert told["clock-wrong"]["requests"]["outage"] == 0
    assert told["routers-stopped"]["requests"]["outage"] > 0, "nobody was served meanwhile"
    left = "ls -d /usr/local/lib/dsv32-stand-ins /usr/local/bin/nvidia-smi /dev/kmsg 2>/dev/null"
    assert said(routed.host("h02"), left) == ""
    runbooks = [json.loads(line) for line in (routed.runs[-1] / "events.jsonl").read_text().splitlines()]
    assert [e["subject"] for e in runbooks if e["kind"] == "move-done"][-1:] == ["5"]


def test_what_a_killed_drill_has_broken_is_whole_before_the_next(routed: RoutedFleet) -> None:
    unit = f"dsv32-router-{routed.reached()}"
    words = ("drill", "router-hangs", "--json")
    begun = routed.start(*words, DSV32_SANDBOX_DIR=str(routed.sandbox.directory))
    routed.wait_for("planted")
    time.sleep(1)
    begun.process.kill()
    begun.ended()
    state = f"cut -d ' ' -f 3 /proc/$(systemctl show -P MainPID {unit})/stat"
    assert said(routed.host("h04"), state) == "T\n"
    assert drill(routed, "guard-killed@h01").code == 0
    assert said(routed.host("h04"), state) != "T\n"
    assert active(routed.host("h04"), unit) == "active"


def test_a_drill_that_is_not_as_its_file_says_fails(routed: RoutedFleet, tmp_path: Path) -> None:
    own = tmp_path / "own"
    (own / "configs/drills").mkdir(parents=True)
    for name in ("roles", *(f"configs/{kind}" for kind in ("engines", "layouts", "routers", "stacks"))):
        (own / name).symlink_to(DATA / name)
    text = "title: x\nspot: leader\npools: [decode]\nplant: [{wait_s: 0.1}]\nmay_fail: none\n"
    text += "status: nobody says this\nseen_within_s: 2\nwhole_within_s: 30\n"
    (own / "configs/drills/unseen.yaml").write_text(text)
    done = drill(routed, "unseen", data=own)
    assert done.code == 1
    (told,) = done.lines("outcome")
    assert told["problems"] == ["nothing said `nobody says this` within 2 s"]


def test_hosts_that_are_not_the_sandbox_s_are_not_touched(routed: RoutedFleet) -> None:
    """By address, and by who answers: here ssh goes to one host under the address of another."""
    addresses = {host.name: {"address": host.address} for host in routed.hosts}
    foreign = {**addresses, "h03": {"address": "10.1.2.3"}}
    swapped = {**addresses, "h02": addresses["h03"], "h03": addresses["h02"]}
    for hosts, what in ((foreign, "has its address"), (swapped, "another machine answers")):
        routed.inventory(hosts=hosts)
        before = [said(host, "systemctl show -P InvocationID 'dsv32-*'") for host in routed.hosts]
        done = drill(routed, "engine-killed")
        assert done.code == 2, done.stdout + done.stderr
        assert any(what in p["what"] for p in done.problems), done.problems
        assert [said(host, "systemctl show -P InvocationID 'dsv32-*'") for host in routed.hosts] == before


def test_an_instance_that_is_killed_costs_requests_in_flight_alone(routed: RoutedFleet) -> None:
    """Last: a drill waits until no guard counts a try any more, which is a minute in this layout."""
    done = drill(routed, "engine-killed@h02", "--rate", "10")
    (told,) = done.lines("outcome")
    assert done.code == 0, done.stdout + done.stderr
    requests = told["requests"]
    print(told["noticed_s"], told["whole_s"], requests)
    assert told["instance"] == "decode-0"
    assert (requests["hung"], requests["wrong"], requests["outage"], requests["after"]) == (0, 0, 0, 0)
    assert requests["in_flight"] <= requests["open"] - told["safe"]
