"""Who may change real hosts, what they remember, and a runbook that brings a crashed instance back."""

from __future__ import annotations

import time
from typing import Any

from stub_fleet import Done, StubFleet
from witness import active, said

from launcher.model.hold import PATH

UNIT = "dsv32-decode-0"
ANA: dict[str, Any] = {"LOGNAME": "ana", "SUDO_USER": ""}
BOB: dict[str, Any] = {"LOGNAME": "bob", "SUDO_USER": ""}


def held(stubs: StubFleet) -> list[bool]:
    return [bool(host.exec("sh", "-c", f"ls {PATH} || true").stdout.strip()) for host in stubs.hosts]


def refusals(done: Done) -> set[str]:
    return {p["what"].partition(" on ")[0] for p in done.problems}


def crash(stubs: StubFleet) -> None:
    """One process of the instance is killed, and no guard is there to bring it back."""
    for name in ("h02", "h03"):
        said(stubs.host(name), "systemctl stop dsv32-guard-decode-0")
    said(stubs.host("h03"), f"kill -9 $(systemctl show -p MainPID --value {UNIT})")
    until_s = time.monotonic() + 60
    while active(stubs.host("h03"), UNIT) == "active":
        assert time.monotonic() < until_s
        time.sleep(0.2)


def test_a_hold_keeps_others_out_and_its_holder_goes_on(stubs: StubFleet) -> None:
    stubs.serve()
    locked = stubs.run("lock", "-m", "a new fan", "--json", **ANA)
    assert locked.code == 0, locked.stderr
    assert held(stubs) == [True] * 4
    before = stubs.state()

    for words in (("up", "--yes"), ("down", "--yes"), ("lock", "-m", "mine")):
        refused = stubs.run(*words, "--json", **BOB)
        assert (refused.code, refusals(refused)) == (4, {"held by ana"}), (words, refused.stderr)
        assert "a new fan" in refused.problems[0]["what"]
    assert stubs.state() == before

    planned = stubs.run("plan", "--json", **BOB)
    assert planned.code == 0, planned.stderr
    assert [h["why"] for h in planned.lines("plan")[0]["holds"]] == ["a new fan"]
    (now,) = stubs.run("status", "--json", **BOB).lines("status")
    assert [h["who"] for h in now["holds"]] == ["ana"]
    assert stubs.up(**ANA).code == 0

    assert stubs.run("unlock", "--json", **BOB).code == 4
    assert stubs.run("unlock", "--force", "-m", "ana is away", **BOB).code == 0
    assert held(stubs) == [False] * 4
    assert stubs.up(**BOB).code == 0

    assert stubs.run("lock", "-m", "a moment", "--for", "1s", **ANA).code == 0
    time.sleep(1.2)
    assert stubs.up(**BOB).code == 0, "it has ended by itself"
    assert stubs.run("unlock", **ANA).code == 0

    deeds = stubs.run("audit", "h02", "--json").lines("deed")
    told = [(d["who"], d["op"], d["why"]) for d in deeds if d["target"] == PATH]
    assert told == [
        ("ana", "put", "a new fan"),
        ("bob", "remove", "ana is away"),
        ("ana", "put", "a moment"),
        ("ana", "remove", ""),
    ]


def test_a_runbook_ends_a_crash_and_goes_on_where_it_stopped(stubs: StubFleet) -> None:
    stubs.serve()
    crash(stubs)
    told = stubs.run("diagnose", "--json").lines("cause")[0]
    assert told["runbook"] == "dsv32-launch runbook run engine-crash decode-0"
    words = ("runbook", "run", "engine-crash", "decode-0", "--yes")

    assert stubs.run("lock", "-m", "mine", **BOB).code == 0
    refused = stubs.run(*words, **ANA)
    assert refused.code == 4, refused.stderr
    assert "engine-crash, step 4: held by bob" in refused.stderr
    assert active(stubs.host("h03"), UNIT) != "active"
    assert stubs.run("unlock", **BOB).code == 0

    done = stubs.run(*words, **ANA)
    assert done.code == 0, done.stdout + done.stderr
    assert "goes on with" in done.stderr
    assert "Keep logs and facts" not in done.stderr, "done before"
    assert "all done" in done.stdout
    assert len(list(stubs.folder.glob("stub-*.tar.gz"))) == 1
    assert stubs.run("status", "--json").code == 0

    runs = {r["run"]: r for r in stubs.run("audit", "--json", **ANA).lines("run")}
    mended = [r for r in runs.values() if r["why"] == "runbook engine-crash" and r["done"]]
    assert [(r["who"], r["result"]) for r in mended] == [("ana", "done")]
    assert "h03" in mended[0]["done"]
    deeds = stubs.run("audit", "h03", "--json").lines("deed")
    orders = [(d["who"], d["target"], d["why"], d["result"]) for d in deeds if d["op"] == "order"]
    assert orders[-1] == ("ana", "run decode-0", "runbook engine-crash", "done")
