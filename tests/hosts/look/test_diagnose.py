"""What broke first, told by real journals of real hosts; and by the logs that a run has saved of them."""

from __future__ import annotations

import tarfile
import time
from pathlib import Path

import pytest
from stub_fleet import Done, StubFleet
from witness import active, said

UNIT = "dsv32-decode-0"


def causes(done: Done) -> list[tuple[str, str, str]]:
    """Signature or `unknown`, host, and what to do, of each cause."""
    found = done.lines("cause")
    return [(c["signature"] or "unknown", c["evidence"][0]["host"], c["do"]) for c in found]


def leave_unguarded(stubs: StubFleet) -> None:
    """What dies stays dead, until the next `up`."""
    for name in ("h02", "h03"):
        said(stubs.host(name), "systemctl stop dsv32-guard-decode-0")


def wait_until_down(stubs: StubFleet, host: str) -> None:
    until_s = time.monotonic() + 60
    while active(stubs.host(host), UNIT) == "active":
        assert time.monotonic() < until_s
        time.sleep(0.2)


def test_nothing_is_wrong_with_what_serves(stubs: StubFleet) -> None:
    stubs.serve()
    done = stubs.run("diagnose", "--json")
    assert (done.code, causes(done)) == (0, []), done.stdout


@pytest.mark.parametrize(
    ("how", "first"),
    [
        ("kill -9 $(systemctl show -p MainPID --value {unit})", "killed"),
        ("systemctl kill --signal=KILL {unit}", "killed-by-hand"),
        ("systemctl stop {unit}", "stopped"),
    ],
)
def test_a_process_that_somebody_ended(stubs: StubFleet, how: str, first: str) -> None:
    stubs.serve()
    leave_unguarded(stubs)
    said(stubs.host("h03"), how.format(unit=UNIT))
    wait_until_down(stubs, "h03")
    done = stubs.run("diagnose", "decode-0", "--json")
    assert done.code == 1
    assert [(c[0], c[1]) for c in causes(done)] == [(first, "h03")], done.stdout
    stubs.serve()


def test_a_process_that_hangs_in_silence_is_named(stubs: StubFleet) -> None:
    """Nothing died, no line says anything; it only does not answer. What was stopped has its stacks taken."""
    stubs.serve()
    leave_unguarded(stubs)
    said(stubs.host("h03"), f"systemctl kill --signal=STOP {UNIT}")
    try:
        blind = stubs.run("diagnose", "--json")
        spy = (
            "printf '#!/bin/sh\\necho stacks of $4\\n' >/usr/local/bin/py-spy; chmod +x /usr/local/bin/py-spy"
        )
        said(stubs.host("h03"), spy)
        done = stubs.run("diagnose", "--json")
    finally:
        said(stubs.host("h03"), f"rm -f /usr/local/bin/py-spy; systemctl kill --signal=CONT {UNIT}")
    assert (blind.code, done.code) == (1, 1)
    (hang,) = done.problems
    assert hang["where"] == f"h03, unit {UNIT}.service"
    assert hang["what"].startswith("decode-0 waits for its process on h03, in phase ")
    pid = said(stubs.host("h03"), f"systemctl show -p MainPID --value {UNIT}").strip()
    assert f"process {pid} (" in hang["why"]
    assert "was stopped by a signal" in hang["why"]
    assert f"stacks of {pid}" in hang["more"]
    assert "no py-spy in PATH on h03" in blind.problems[0]["more"]
    assert hang["do"] in ("dsv32-launch logs decode-0 --follow", "dsv32-launch restart decode-0")
    stubs.serve()


def test_what_a_run_has_saved_says_the_same_as_the_hosts(stubs: StubFleet) -> None:
    stubs.bare()
    stubs.write(settings={"decode": {"stub-dies": "traceback"}})
    assert stubs.up().code == 1
    live = stubs.run("diagnose", "decode-0", "--json")
    saved = stubs.run("diagnose", "--from", str(stubs.runs[-1]), "--json")
    assert (live.code, saved.code) == (1, 1)
    assert causes(live)[0] == ("unknown", "h03", "dsv32-launch logs decode-0"), live.stdout
    assert causes(saved)[0] == causes(live)[0]
    stubs.serve()


def test_a_bundle_holds_all_that_a_diagnosis_needs_and_no_secret(stubs: StubFleet, tmp_path: Path) -> None:
    stubs.serve()
    token = "hf_" + "a1B2" * 8
    said(stubs.host("h03"), f"echo 'HF_TOKEN={token}' | systemd-cat -p info -t x")
    leave_unguarded(stubs)
    said(stubs.host("h03"), f"kill -9 $(systemctl show -p MainPID --value {UNIT})")
    wait_until_down(stubs, "h03")
    live = stubs.run("diagnose", "--json")
    path = tmp_path / "ticket.tar.gz"
    made = stubs.run("bundle", "--to", str(path), "--hide-addresses")
    assert made.code == 0, made.stderr
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / "ticket"
    texts = {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}
    assert texts.keys() >= {
        *("CONTENTS.txt", "diagnosis.txt", "inventory.yaml", "versions.json"),
        *("hosts/h03/dsv32-decode-0.log", "hosts/h03/dsv32-decode-0.service", "hosts/h03/host.json"),
    }
    assert any(name.startswith("runs/") for name in texts)
    everything = "".join(texts.values())
    assert token not in everything
    assert stubs.host("h03").address not in everything
    saved = stubs.run("diagnose", "--from", str(folder), "--json")
    assert [c[:2] for c in causes(saved)] == [c[:2] for c in causes(live)] == [("killed", "h03")]
    stubs.serve()


def test_a_host_that_does_not_answer_is_told_of(stubs: StubFleet) -> None:
    stubs.serve()
    stubs.write(ssh={"connect_within_s": 3})
    stubs.host("h03").cut(silent=True)
    try:
        done = stubs.run("diagnose", "decode-0", "--json")
    finally:
        stubs.host("h03").heal()
    assert done.code == 1
    assert any("h03" in p["where"] for p in done.problems), done.problems
