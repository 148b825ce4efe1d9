"""One bad host: one message that names it and the way out; what does not need it is done and goes on."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from stub_fleet import StubFleet
from witness import active, said

from launcher.sandbox import SandboxHost

BAD = "h02"
OLD_PYTHON = Path.home() / ".pyenv/versions/3.6.15"
WANTS_PASSWORD = "echo 'ops ALL=(ALL) ALL' >/etc/sudoers.d/ops"
ASKS_NOTHING = "echo 'ops ALL=(ALL) NOPASSWD:ALL' >/etc/sudoers.d/ops"


@dataclass(frozen=True)
class Fault:
    """How it is made and unmade on a host, who logs in, and what `up` says."""

    make: Callable[[SandboxHost], object]
    what: str
    do: str
    undo: Callable[[SandboxHost], object] = lambda host: None
    user: str = "root"
    silences: bool = False
    """Is nothing heard of it any more by its instance's other hosts?"""


def shell(script: str) -> Callable[[SandboxHost], object]:
    return lambda host: host.exec("sh", "-c", script)


def give_old_python(host: SandboxHost) -> None:
    """A real one, where it was built for, and before all others in the PATH."""
    if not OLD_PYTHON.exists():
        pytest.skip(f"there is no {OLD_PYTHON}")
    skipped = ("test", "site-packages", "idlelib", "lib2to3", "ensurepip", "__pycache__", "config-*")
    to = host.place.root / OLD_PYTHON.relative_to("/")
    shutil.copytree(OLD_PYTHON / "lib", to / "lib", ignore=shutil.ignore_patterns(*skipped))
    (to / "bin").mkdir()
    shutil.copy2(OLD_PYTHON / "bin/python3.6", to / "bin")
    said(host, f"ln -s {OLD_PYTHON}/bin/python3.6 /usr/local/bin/python3")
    assert said(host, "python3 --version") == "Python 3.6.15\n"


FAULTS = {
    "cut": Fault(lambda h: h.cut(), "no route to h02", "ip route get", silences=True),
    "cut, silent": Fault(
        lambda h: h.cut(silent=True),
        "h02 does not answer on port 22 within 6 s",
        "ssh.connect_within_s",
        silences=True,
    ),
    "frozen": Fault(
        lambda h: h.freeze(),
        "h02 accepts connections and then says nothing for 6 s",
        "power-cycle it",
        silences=True,
    ),
    "disk full": Fault(
        lambda h: h.fill("/"),
        "/etc/logrotate.d/dsv32: put /etc/logrotate.d/dsv32: no space left on device",
        "make room on h02",
    ),
    "another key": Fault(lambda h: None, "host key of h02 has changed", "ssh-keygen -R 'h02'"),
    "sudo wants a password": Fault(
        shell(WANTS_PASSWORD),
        "sudo on h02 does not let `ops` through without a password",
        "ssh.sudo_password",
        shell(ASKS_NOTHING),
        "ops",
    ),
    "no sudo rights": Fault(
        shell("gpasswd -d opspw sudo"),
        "`opspw` may not use sudo on h02",
        "usermod -aG sudo opspw",
        shell("gpasswd -a opspw sudo"),
        "opspw",
    ),
    "no python": Fault(
        shell("mv /usr/bin/python3 /usr/bin/away"),
        "h02 has no python3",
        "apt-get install -y python3",
        shell("mv /usr/bin/away /usr/bin/python3"),
    ),
    "old python": Fault(
        give_old_python,
        "python3 3.6.15 on h02, 3.10 or newer is needed",
        "install a newer python3",
        shell(f"rm -rf /usr/local/bin/python3 {OLD_PYTHON}"),
    ),
}


@pytest.fixture(params=FAULTS)
def fault(request: pytest.FixtureRequest, stubs: StubFleet) -> Iterator[str]:
    """Everything serves; then each host loses a file, and one host more than that."""
    stubs.serve()
    for host in stubs.hosts:
        said(host, "rm /etc/logrotate.d/dsv32")
    bad, fault = stubs.host(BAD), FAULTS[request.param]
    config = stubs.sandbox.ssh_config.read_text().replace("  User root\n", f"  User {fault.user}\n")
    if request.param == "another key":
        config = config.replace(str(stubs.sandbox.place.known_hosts), str(wrong_keys(stubs)))
    (stubs.folder / "ssh_config").write_text(config)
    ssh = {"config": "ssh_config", "connect_within_s": 6}
    password = {"sudo_password": "sudo"} if fault.user == "opspw" else {}
    stubs.write(ssh={**ssh, **password}, secrets={"sudo": "env:SUDO_SECRET"} if password else {})
    fault.make(bad)
    try:
        yield request.param
    finally:
        bad.mend()
        fault.undo(bad)


def wrong_keys(stubs: StubFleet) -> Path:
    """known_hosts in which the bad host has the key of another one."""
    keys = {line.split(",")[0]: line for line in stubs.sandbox.place.known_hosts.read_text().splitlines()}
    path = stubs.folder / "known_hosts"
    keys[BAD] = keys["h01"].replace("h01", BAD, 1)
    path.write_text("".join(f"{line}\n" for line in keys.values()))
    return path


def test_is_named_once_and_harms_no_other(stubs: StubFleet, fault: str) -> None:
    pid = "systemctl show -P MainPID dsv32-prefill-0"
    before = said(stubs.host("h01"), pid)
    done = stubs.up(SUDO_SECRET="sandbox")
    assert done.code == 1, done.stdout
    named = [p for p in done.problems if FAULTS[fault].what in p["what"]]
    assert len(named) == 1, done.problems
    assert named[0]["where"].startswith(BAD)
    assert FAULTS[fault].do in named[0]["do"]
    others = [p["what"] for p in done.problems if p not in named]
    assert others in ([], ["decode-0 is not started"]), others

    for name in ("h01", "h03", "h04"):
        assert said(stubs.host(name), "ls /etc/logrotate.d/dsv32") == "/etc/logrotate.d/dsv32\n"
    assert said(stubs.host("h01"), pid) == before
    # what cannot serve without a peer is stopped by its guard, and by nobody else
    expected, until_s = "inactive" if FAULTS[fault].silences else "active", time.monotonic() + 30
    while active(stubs.host("h03"), "dsv32-decode-0") != expected:
        assert time.monotonic() < until_s
        time.sleep(0.2)
    assert active(stubs.host("h04"), "dsv32-router-a") == "active"
