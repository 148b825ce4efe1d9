"""An engine that does not come up, or not for long: `up` says where and why, and takes its rest down."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from stub_fleet import StubFleet
from witness import active, said

UNIT = "dsv32-decode-0.service"
TOLD_WITHIN_S = 15.0


def died_s(stubs: StubFleet, words: str) -> float:
    """When the process on h03 said these words, by its host's journal."""
    script = f"journalctl -u {UNIT} -o short-unix --no-pager | grep -F '{words}' | tail -n1 | cut -d' ' -f1"
    return float(said(stubs.host("h03"), script))


def told_s(event: dict[str, Any]) -> float:
    return datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()


@pytest.mark.parametrize(
    ("dies", "first_error", "ending"),
    [
        (
            "traceback",
            "ValueError: the stub was told to die, of 42 causes",
            "ended with exit status 1",
        ),
        ("quietly", "RuntimeError: a peer of the group is gone", "ended with exit status 0"),
        ("late", "RuntimeError: the stub was told to die late", "ended with exit status 1"),
    ],
)
def test_at_its_start(stubs: StubFleet, dies: str, first_error: str, ending: str) -> None:
    stubs.bare()
    stubs.write(settings={"decode": {"stub-dies": dies}})
    done = stubs.up()
    assert done.code == 1, done.stdout
    failure, too_few = done.problems
    assert failure["what"] == f"decode-0 did not become ready: the process on h03 {ending}"
    assert failure["where"] == f"h03, unit {UNIT}"
    assert failure["why"] == f"first error, on h03: {first_error}"
    assert failure["do"] == "dsv32-launch diagnose decode-0"
    assert "dsv32-launch logs decode-0" in failure["more"]
    assert first_error in (stubs.runs[-1] / "hosts/h03/dsv32-decode-0.log").read_text()
    (event,) = stubs.events("instance-failed")
    assert event["subject"] == "decode-0"
    assert told_s(event) - died_s(stubs, first_error) < TOLD_WITHIN_S

    assert too_few["what"] == "pool decode has 0 of 1 instances, its minimum is 1"
    assert [e["subject"] for e in stubs.events("stage-started")][-1] == "engine", "the router is not switched"
    assert active(stubs.host("h04"), "dsv32-router-a") == "inactive"
    assert active(stubs.host("h02"), "dsv32-decode-0") == "inactive", "the rest is stopped"
    assert active(stubs.host("h01"), "dsv32-prefill-0") == "active", "the other instance stays"
    stubs.serve()


def test_at_the_first_request(stubs: StubFleet) -> None:
    """Ready, and dead as soon as it has something to do: the canary finds it."""
    stubs.serve()
    stubs.write(settings={"decode": {"stub-dies": "request"}})
    done = stubs.up()
    assert done.code == 1, done.stdout
    error = "RuntimeError: the stub was told to die at its first request"
    (failure,) = [p for p in done.problems if p["where"] == f"h03, unit {UNIT}"]
    assert failure["why"] == f"first error, on h03: {error}"
    stubs.serve()
