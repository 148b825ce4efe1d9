"""`up` on real hosts, by the installed command: it plans without touching, serves, and then rests."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from stub_fleet import StubFleet
from witness import active, every_byte, leftovers, said

from launcher.sandbox.base import SUDO_PASSWORD

PAIRS = {"prefill-0@h01 → decode-0@h02", "prefill-0@h01 → decode-0@h03"}


def logins(stubs: StubFleet) -> list[int]:
    """SSH logins that each host has seen."""
    return [int(said(h, "journalctl -u ssh -o cat | grep -c Accepted")) for h in stubs.hosts]


def test_from_bare_hosts_to_service_and_then_nothing_to_do(stubs: StubFleet) -> None:
    stubs.bare()
    before = [every_byte(h) for h in stubs.hosts]
    planned = stubs.plan()
    assert planned.code == 3
    assert len(planned.changes) > 90
    assert [every_byte(h) for h in stubs.hosts] == before, "plan changes nothing"

    done = stubs.up()
    assert done.code == 0, done.stdout
    assert done.changes == planned.changes
    verdicts = {f["subject"]: f["severity"] for f in done.lines("finding")}
    assert set(verdicts.values()) == {"OK"}
    assert verdicts.keys() >= {"prefill-0", "decode-0", "router@h04"} | PAIRS
    assert [active(stubs.host(h), "dsv32-decode-0") for h in ("h02", "h03")] == ["active", "active"]
    assert said(stubs.host("h01"), "cd /nvme/models/tiny && sha256sum -c --quiet <<E\n" + sums(stubs)) == ""
    assert active(stubs.host("h04"), "dsv32-front") == "active"

    after, logged_in = [every_byte(h) for h in stubs.hosts], logins(stubs)
    again = stubs.plan()
    assert (again.code, again.changes) == (0, [])
    assert stubs.run("plan").stdout.splitlines()[-1] == "No changes."
    assert [n - m for n, m in zip(logins(stubs), logged_in, strict=True)] == [2, 2, 2, 2], (
        "once a host and run"
    )
    once_more = stubs.up()
    assert (once_more.code, once_more.changes) == (0, [])
    assert not stubs.events("stage-started", "change-started", "change-done", "job")
    assert [n - m for n, m in zip(logins(stubs), logged_in, strict=True)] == [3, 3, 3, 3]
    assert [every_byte(h) for h in stubs.hosts] == after, "a second up changes nothing"
    assert not "".join(leftovers(h) for h in stubs.hosts)


def sums(stubs: StubFleet) -> str:
    """The model's manifest as sha256sum reads it."""
    files = json.loads((stubs.sandbox.gpfs / "models/tiny/manifest.json").read_text())["files"]
    return "".join(f"{entry['sha256']}  {name}\n" for name, entry in files.items())


@pytest.mark.parametrize(
    ("user", "words", "variables"),
    [
        ("ops", {}, {}),
        ("opspw", {"secrets": {"sudo": "env:SUDO_SECRET"}}, {"SUDO_SECRET": SUDO_PASSWORD}),
    ],
)
def test_whoever_logs_in(
    stubs: StubFleet, user: str, words: dict[str, object], variables: dict[str, Any]
) -> None:
    stubs.bare()
    config = stubs.folder / "ssh_config"
    config.write_text(stubs.sandbox.ssh_config.read_text().replace("  User root\n", ""))
    ssh = {"config": "ssh_config", "user": user, **({"sudo_password": "sudo"} if words else {})}
    stubs.write(ssh=ssh, **words)
    done = stubs.up(**variables)
    assert done.code == 0, done.stdout
    assert stubs.run("status").code == (2 if words else 0), "the secret is asked for"
    written = "".join(p.read_text() for p in stubs.folder.rglob("*") if p.is_file() and p != config)
    assert f'"{SUDO_PASSWORD}"' not in written + done.stdout
    for host in stubs.hosts:
        assert f'"who": "{user}"' not in said(host, "cat /var/log/dsv32/journal.jsonl"), (
            "by whom, not as whom"
        )
        assert said(host, "stat -c %U /etc/dsv32 /etc/tmpfiles.d/dsv32.conf") == "root\nroot\n"


def test_two_at_once(stubs: StubFleet) -> None:
    stubs.bare()
    first = stubs.start("up", "--yes", "--json")
    stubs.wait_for("stage-started")
    held = stubs.runs[0].name
    second = stubs.up()
    done = first.ended()
    assert done.code == 0, done.stdout
    assert second.code == 4
    assert second.changes == []
    assert second.problems
    for problem in second.problems:
        assert problem["where"] in ("h01", "h02", "h03", "h04")
        assert f"locked by run {held} of root on " in problem["what"]
        assert f"(pid {first.process.pid}) since 20" in problem["what"]
        assert f"kill {first.process.pid}" in problem["do"]
    assert stubs.plan().code == 0


def test_ctrl_c_ends_what_was_begun_and_begins_nothing(stubs: StubFleet) -> None:
    stubs.bare()
    begun = stubs.start("up", "--yes", "--json")
    stubs.wait_for("change-started")
    begun.process.send_signal(signal.SIGINT)
    done = begun.ended()
    assert done.code == 130, done.stdout + done.stderr
    assert "interrupted: no new operation starts" in done.stderr
    events = stubs.events()
    assert {e["subject"] for e in events if e["kind"] == "stage-started"} == {"host"}
    started = [(e["host"], e["subject"], e["text"]) for e in events if e["kind"] == "change-started"]
    came = [(e["host"], e["subject"], e["text"]) for e in events if e["kind"] == "change-done"]
    assert sorted(started) == sorted(came), "what was begun came to its end"
    assert not "".join(leftovers(h) for h in stubs.hosts)
    assert [active(stubs.host(h), "dsv32-decode-0") for h in ("h02", "h03")] == ["inactive", "inactive"]
    assert "  exit 130\n" in stubs.run("runs").stdout
    stubs.serve()
    assert stubs.plan().code == 0
