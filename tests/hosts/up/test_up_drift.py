"""What a hand has changed on a host: shown with before and after, repaired, and nothing else touched."""

from __future__ import annotations

import time
from pathlib import Path

from stub_fleet import StubFleet
from witness import active, said

PID = "systemctl show -P MainPID dsv32-{}"
STRAY = r"printf '[Service]\nExecStart=/bin/sleep infinity\n' >/etc/systemd/system/dsv32-stray.service"


def pids(stubs: StubFleet) -> dict[str, str]:
    places = {"prefill-0": ["h01"], "decode-0": ["h02", "h03"], "front": ["h04"]}
    places |= {"router-a": ["h04"], "router-b": ["h04"]}
    return {f"{n}@{h}": said(stubs.host(h), PID.format(n)) for n, hosts in places.items() for h in hosts}


def test_is_shown_and_repaired(stubs: StubFleet) -> None:
    stubs.serve()
    straight, before = stubs.state(), pids(stubs)
    said(stubs.host("h01"), "echo 'D /tmp/mine' >>/etc/tmpfiles.d/dsv32.conf; chmod 700 /nvme/models")
    said(stubs.host("h02"), "systemctl stop dsv32-guard-decode-0 dsv32-decode-0")
    until_s = time.monotonic() + 60
    while active(stubs.host("h03"), "dsv32-decode-0") != "inactive":
        assert time.monotonic() < until_s, "its guard stops what cannot serve without h02"
        time.sleep(0.2)
    said(stubs.host("h03"), f"{STRAY}; systemctl start dsv32-stray")
    said(stubs.host("h04"), "sed -i s/^RestartSec=1/RestartSec=9/ /etc/systemd/system/dsv32-router-a.service")

    plan = stubs.plan()
    assert plan.code == 3
    shown = {(c["host"], c["step"], c["action"]): (c["before"], c["after"]) for c in plan.lines("change")}
    assert list(shown) == [
        ("h01", "os-base/run-at-boot", "UPDATE"),
        ("h01", "os-base/models", "UPDATE"),
        ("h02", "guard/unit[decode-0]", "START"),
        ("h03", "orphan[dsv32-stray.service]", "REMOVE"),
        ("h02", "engine/unit[decode-0]", "START"),
        ("h03", "engine/unit[decode-0]", "START"),
        ("h04", "router/units", "UPDATE"),
    ]
    assert shown["h01", "os-base/models", "UPDATE"] == ("folder 0700 root:root", "folder 0755 root:root")
    assert shown["h03", "orphan[dsv32-stray.service]", "REMOVE"] == ("there", "stopped and absent")
    assert shown["h02", "engine/unit[decode-0]", "START"][0] == "stopped"
    text = stubs.run("plan", "-v").stdout
    assert "-D /tmp/mine" in text
    assert "-RestartSec=9" in text
    assert "+RestartSec=1" in text

    done = stubs.up()
    assert done.code == 0, done.stdout
    assert done.changes == plan.changes
    assert stubs.state() == straight
    assert active(stubs.host("h03"), "dsv32-stray") == "inactive"
    after = pids(stubs)
    moved = {name for name, pid in after.items() if pid != before[name]}
    assert moved == {"decode-0@h02", "decode-0@h03"}, "an instance starts as a whole, and nothing else does"


def test_a_unit_that_runs_what_is_no_longer_on_disk(stubs: StubFleet) -> None:
    """Edited, started, and the file put back with its old time: systemd sees no difference."""
    stubs.serve()
    before = pids(stubs)
    reached = said(stubs.host("h04"), "head -1 /etc/dsv32/routers.cfg").split()[-1]
    unit = f"dsv32-router-{reached}"
    path = f"/etc/systemd/system/{unit}.service"
    script = f"cp -p {path} /tmp/u; sed -i 's/echo [0-9a-f]*/echo other/' {path}; systemctl daemon-reload"
    said(stubs.host("h04"), f"{script}; systemctl restart {unit}; cp -p /tmp/u {path}")
    plan = stubs.plan()
    assert plan.changes == [("h04", "router/units", "RESTART")]
    assert plan.lines("change")[0]["before"] == "release other"
    assert stubs.up().code == 0
    assert stubs.plan().code == 0
    after = pids(stubs)
    assert {n for n in after if after[n] != before[n]} == {f"router-{reached}@h04"}


def test_another_setting_restarts_the_whole_instance_and_nothing_else(stubs: StubFleet) -> None:
    stubs.serve()
    before = pids(stubs)
    stubs.write(settings={"decode": {"max-num-seqs": 5}})
    plan = stubs.plan()
    assert plan.changes == [
        ("h02", "engine/unit[decode-0]", "UPDATE"),
        ("h03", "engine/unit[decode-0]", "UPDATE"),
        ("h02", "engine/unit[decode-0]", "RESTART"),
        ("h03", "engine/unit[decode-0]", "RESTART"),
    ]
    done = stubs.up()
    assert done.code == 0, done.stdout
    after = pids(stubs)
    assert {n for n in after if after[n] != before[n]} == {"decode-0@h02", "decode-0@h03"}
    for host in ("h02", "h03"):
        assert "--max-num-seqs\0005\000" in said(
            stubs.host(host), 'cat "/proc/$(' + PID.format("decode-0") + ')/cmdline"'
        )


def test_a_saved_plan_is_applied_or_refused(stubs: StubFleet, tmp_path: Path) -> None:
    stubs.bare()
    assert stubs.plan("--out", "saved").code == 3
    done = stubs.run("up", "--plan", "saved")
    assert done.code == 0, done.stdout + done.stderr

    said(stubs.host("h02"), "rm /etc/logrotate.d/dsv32")
    assert stubs.plan("--out", "saved").code == 3
    said(stubs.host("h03"), "chmod 600 /etc/logrotate.d/dsv32")
    stale = stubs.run("up", "--plan", "saved", "--json")
    assert stale.code == 6
    (problem,) = stale.problems
    assert "h03, step logs/rotation: /etc/logrotate.d/dsv32 is a new change: " in problem["what"]
    assert problem["why"] == "plan is stale"
    assert said(stubs.host("h02"), "ls /etc/logrotate.d/dsv32") == "", "nothing was changed"
    stubs.serve()
