"""The commands around `up`: down, status, logs, explain, runs."""

from __future__ import annotations

import re

from stub_fleet import StubFleet
from witness import said


def test_down_and_up_again(stubs: StubFleet) -> None:
    stubs.serve()
    (status,) = (before := stubs.run("status", "--json")).lines("status")
    assert before.code == 0
    assert {(p["host"], p["active"], p["healthy"]) for p in status["processes"]} == {
        (host, "active", True) for host in ("h01", "h02", "h03")
    }
    assert status["routers"][0]["pools"] == {"prefill": [1, 1], "decode": [2, 2]}

    done = stubs.run("down", "--yes", "--json")
    assert done.code == 0, done.stdout
    stopped = [(e["host"], e["subject"]) for e in stubs.events("change-done")]
    assert stopped[:3] == [("h04", "down[front]"), *[("h04", "down[router]")] * 2], (
        "nobody is sent to an engine any more"
    )
    assert sorted(stopped[3:]) == [
        ("h01", "down[prefill-0]"),
        ("h02", "down[decode-0]"),
        ("h03", "down[decode-0]"),
    ]
    assert {said(h, "pgrep -f '[b]in/stub'") for h in stubs.hosts} == {""}

    again = stubs.run("down", "--yes", "--json")
    assert (again.code, again.changes) == (0, [])
    plan = stubs.plan()
    assert {action for _, _, action in plan.changes} == {"START"}
    assert len(plan.changes) == 5
    (status,) = (after := stubs.run("status", "--json")).lines("status")
    assert after.code == 1
    assert {p["active"] for p in status["processes"]} == {"inactive"}
    stubs.serve()
    flows = re.findall(r"^\S+Z-(\w+)\S*  +stub  +root  +(\w+)", stubs.run("runs").stdout, re.MULTILINE)
    assert flows == [("up", "done"), ("down", "done"), ("down", "done"), ("up", "done")]
    assert "down[decode-0]" in stubs.run("runs", stubs.runs[1].name).stdout


def test_logs_are_merged_in_the_order_of_time(stubs: StubFleet) -> None:
    stubs.serve()
    done = stubs.run("logs", "decode-0", "--json", "--grep", "stub engine")
    assert done.code == 0
    lines = done.lines("line")
    assert {line["host"] for line in lines} == {"h02", "h03"}
    assert [line["time_s"] for line in lines] == sorted(line["time_s"] for line in lines)
    assert {line["text"] for line in lines} >= {"stub engine starts, rank 0", "stub engine starts, rank 1"}
    guards = stubs.run("logs", "decode-0", "--unit", "guard", "--grep", "starts epoch", "-n", "1", "--json")
    assert {(e["host"], e["unit"]) for e in guards.lines("line")} == {
        (host, "dsv32-guard-decode-0.service") for host in ("h02", "h03")
    }
    assert (
        stubs.run("logs", "decode-0", "--since", "1h", "--until", "2000-01-01", "--json").lines("line") == []
    )
    everything = stubs.run("logs", "-n", "5000")
    assert {unit for line in everything.stdout.splitlines() for unit in line.split()[3:4]} >= {
        *("decode-0", "guard-decode-0", "router-a", "front"),
    }


def test_everything_can_be_explained(stubs: StubFleet) -> None:
    stubs.write(settings={"decode": {"max-num-seqs": 5}})
    (line,) = [
        n
        for n, text in enumerate((stubs.folder / "stub.yaml").read_text().splitlines(), 1)
        if "max-num" in text
    ]
    said_of_it = stubs.run("explain", "max-num-seqs")
    assert f"stub.yaml:{line}" in said_of_it.stdout
    assert "stub-1p1d.yaml:4" in said_of_it.stdout, "prefill has the layout's"
    for subject in (
        "decode-0",
        "h02",
        "8000",
        "router",
        "engine/unit[decode-0]",
        "VLLM_HOST_IP",
        "weights/model",
    ):
        done = stubs.run("explain", subject)
        assert done.code == 0, subject
        assert re.search(r"\w+\.yaml:\d+", done.stdout) or subject == "8000", subject
    unknown = stubs.run("explain", "decode-1")
    assert unknown.code == 2
    assert "decode-0" in unknown.stderr
