"""The sandbox is what it says: real hosts, real faults, and nothing left behind."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from launcher.model.problem import InputError, LauncherError
from launcher.sandbox import Sandbox
from launcher.sandbox.base import SUDO_PASSWORD

OTHER = "dsu"


@pytest.fixture
def other(base_tree: Path, test_sandbox: Sandbox, tmp_path: Path) -> Iterator[Sandbox]:
    """A second sandbox beside the first, with disks on disk, as users get it; gone after the test."""
    made = Sandbox(tmp_path / "other", name=OTHER, base=base_tree)
    yield made
    made.down(purge=True)


def ssh(sandbox: Sandbox, target: str, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = ["ssh", "-F", str(sandbox.ssh_config), target, *words]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60)


def banner(address: str, *, within_s: float = 1.0) -> bytes:
    with socket.create_connection((address, 22), timeout=within_s) as connection:
        return connection.recv(64)


def answers(address: str) -> bool:
    try:
        return banner(address).startswith(b"SSH-2.0-")
    except OSError:
        return False


def traces(sandbox: Sandbox, name: str) -> list[str]:
    """Everything of a sandbox that can be seen on this machine from outside, but its work directory."""
    found = [line for line in Path("/proc/mounts").read_text().splitlines() if str(sandbox.directory) in line]
    found += [str(path) for path in Path("/sys/class/net").glob(f"{name}*")]
    found += [str(path) for path in Path("/run/netns").glob(f"{name}-*")]
    found += [str(path) for path in Path("/run/systemd/nspawn").glob(f"*/{name}-*")]
    found += [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/dsv32-{name}")]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # it has ended meanwhile
            continue
        if f"--machine={name}-" in words or f'"{name}' in words or f" {name}1a " in words:
            found.append(f"{process}: {words}")
    return found


def test_up_again_changes_nothing(sandbox: Sandbox) -> None:
    inits = [host.init for host in sandbox.hosts()]
    files = {p: p.read_text() for p in (sandbox.ssh_config, sandbox.place.known_hosts, sandbox.place.key)}
    sandbox.up(4)
    assert None not in inits
    assert [host.init for host in sandbox.hosts()] == inits
    assert {path: path.read_text() for path in files} == files
    assert [(s.power, s.link) for s in (h.status() for h in sandbox.hosts())] == [("up", "ok")] * 4


def test_up_mends_every_fault(sandbox: Sandbox) -> None:
    for fault, host in zip(("kill", "freeze", "cut", "fill"), sandbox.hosts(), strict=True):
        getattr(host, fault)()
    sandbox.host("h04").delay("30ms")
    assert [h.status().power for h in sandbox.hosts()] == ["down", "frozen", "up", "up"]
    assert [h.status().link for h in sandbox.hosts()] == ["ok", "ok", "cut", "ok"]
    sandbox.up(4)
    assert all(answers(host.address) for host in sandbox.hosts())
    assert sandbox.host("h04").exec("sh", "-c", "echo text >/nvme/after && rm /nvme/after").returncode == 0
    assert sandbox.host("h04").status().delay == ""


def test_hosts_are_hosts(sandbox: Sandbox) -> None:
    """systemd as PID 1, a name and an address of its own, a way to the peers and none out."""
    host = sandbox.host("h02")
    assert host.exec("systemctl", "is-system-running").stdout == "running\n"
    assert host.exec("hostname").stdout == "h02\n"
    routes = host.exec("ip", "-4", "route").stdout.splitlines()
    assert len(routes) == 1
    assert host.address in routes[0]
    assert "default" not in routes[0]
    peer = "exec 3<>/dev/tcp/h03/22 && head -c 4 <&3"
    assert host.exec("bash", "-c", peer).stdout == "SSH-"
    machine_ids = {h.exec("cat", "/etc/machine-id").stdout for h in sandbox.hosts()}
    assert len(machine_ids) == 4


def test_gpfs_is_shared_and_read_only(sandbox: Sandbox) -> None:
    (sandbox.gpfs / "shared.txt").write_text("one for all\n")
    for host in sandbox.hosts():
        assert host.exec("cat", "/gpfs/shared.txt").stdout == "one for all\n"
    assert "Read-only" in sandbox.host("h01").exec("touch", "/gpfs/mine").stderr


def test_logins(sandbox: Sandbox) -> None:
    assert ssh(sandbox, "h01", "id", "-un").stdout == "root\n"
    assert ssh(sandbox, "ops@h01", "sudo", "-n", "id", "-un").stdout == "root\n"
    refused = ssh(sandbox, "opspw@h01", "sudo", "-n", "id", "-un")
    assert refused.returncode
    assert "password" in refused.stderr
    asked = ssh(sandbox, "opspw@h01", "sudo", "-S", "id", "-un", stdin=f"{SUDO_PASSWORD}\n")
    assert asked.stdout == "root\n"


def test_a_wrong_host_key_is_noticed(sandbox: Sandbox) -> None:
    wrong = sandbox.place.known_hosts.read_text().replace(sandbox.host("h02").address, "10.0.0.0")
    lines = [line for line in wrong.splitlines() if line.startswith("h01,")]
    swapped = sandbox.directory / "swapped_known_hosts"
    swapped.write_text(lines[0].replace("h01,", "h02,") + "\n")
    command = ["ssh", "-F", str(sandbox.ssh_config), "-o", f"UserKnownHostsFile={swapped}", "h02", "true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 255
    assert "Host key verification failed" in done.stderr


def test_power_loss_keeps_disks(sandbox: Sandbox) -> None:
    host = sandbox.host("h01")
    host.exec("sh", "-c", "echo kept >/root/kept; echo kept >/nvme/kept; echo gone >/run/gone; sync")
    boot, address = host.init, host.address
    host.kill()
    assert host.init is None
    assert not answers(address)
    with pytest.raises(LauncherError, match="h01 is down"):
        host.exec("true")
    host.start()
    assert host.init not in (None, boot)
    assert answers(address)
    assert host.exec("cat", "/root/kept", "/nvme/kept").stdout == "kept\nkept\n"
    assert host.exec("test", "-e", "/run/gone").returncode == 1


def test_orderly_stop(sandbox: Sandbox) -> None:
    host = sandbox.host("h01")
    unit = "[Service]\nExecStart=sleep infinity\nExecStop=touch /nvme/stopped-in-order\n"
    host.exec("sh", "-c", "cat >/run/systemd/system/tidy.service", stdin=unit)
    host.exec("systemctl", "start", "tidy")
    host.stop()
    assert host.init is None
    host.start()
    assert host.exec("test", "-e", "/nvme/stopped-in-order").returncode == 0


def test_a_reboot_from_inside_comes_back(sandbox: Sandbox) -> None:
    host = sandbox.host("h01")
    before = host.init
    host.exec("systemctl", "reboot")
    until = time.monotonic() + 60
    while host.init in (None, before) and time.monotonic() < until:
        time.sleep(0.1)
    host.await_ready(within_s=60)
    assert host.init not in (None, before)


def test_a_cut_host_has_no_route(sandbox: Sandbox) -> None:
    host = sandbox.host("h01")
    host.cut()
    with pytest.raises(OSError, match="No route to host") as raised:
        banner(host.address, within_s=30)
    assert raised.value.errno == errno.EHOSTUNREACH
    # a unit that another test failed is no matter here
    assert host.exec("systemctl", "is-system-running").stdout in ("running\n", "degraded\n")
    assert answers(sandbox.host("h02").address)
    host.heal()
    assert answers(host.address)


def test_a_silently_cut_host_swallows_packets(sandbox: Sandbox) -> None:
    host = sandbox.host("h01")
    host.cut(silent=True)
    # longer than the 3 s after which ARP would have given up
    with pytest.raises(TimeoutError):
        banner(host.address, within_s=5)
    host.heal()
    assert answers(host.address)


def test_a_frozen_host_connects_and_says_nothing(sandbox: Sandbox) -> None:
    host = sandbox.host("h01")
    host.freeze(True)
    with socket.create_connection((host.address, 22), timeout=5) as connection:
        connection.settimeout(2)
        with pytest.raises(TimeoutError):
            connection.recv(64)
    host.freeze(False)
    assert answers(host.address)


@pytest.mark.parametrize("path", ["/nvme", "/"])
def test_a_full_disk_is_full(sandbox: Sandbox, path: str) -> None:
    host = sandbox.host("h01")
    write = ("dd", "if=/dev/zero", f"of={path.rstrip('/')}/more", "bs=4k", "count=1")
    host.fill(path)
    full = host.exec(*write)
    assert full.returncode
    assert "No space left on device" in full.stderr
    host.free()
    assert host.exec(*write).returncode == 0


def test_delay_holds_for_each_direction(sandbox: Sandbox) -> None:
    host = sandbox.host("h01")

    def fastest_s() -> float:
        rounds = []
        for _ in range(5):
            began = time.monotonic()
            socket.create_connection((host.address, 22), timeout=10).close()
            rounds.append(time.monotonic() - began)
        return min(rounds)

    host.delay("20ms")
    assert fastest_s() >= 0.039
    host.undelay()
    assert host.status().delay == ""
    assert not list(Path("/sys/class/net").glob(f"{host.place.port}[mab]"))
    assert answers(host.address)
    with pytest.raises(InputError, match="`20miles` is not a number"):
        host.delay("20miles")


def test_down_leaves_nothing(other: Sandbox) -> None:
    """Also: two sandboxes beside each other, and a smaller N."""
    other.up(3)
    third = other.host("h03")
    other.host("h01").delay("1ms")
    other.host("h02").freeze()
    other.host("h03").cut()
    assert traces(other, OTHER)
    other.up(2)
    assert not third.exists
    assert [host.name for host in other.hosts()] == ["h01", "h02"]
    other.host("h01").delay("1ms")
    other.host("h02").freeze()
    (other.gpfs / "mine").write_text("stays")
    other.down()
    assert traces(other, OTHER) == []
    assert sorted(path.name for path in other.directory.iterdir()) == ["gpfs", "lock"]
    assert (other.gpfs / "mine").read_text() == "stays"
    other.down(purge=True)
    assert not other.directory.exists()


def test_a_killed_command_is_repaired_by_the_next(other: Sandbox, base_tree: Path) -> None:
    code = (
        "import sys; from launcher.sandbox import Sandbox\n"
        f"s = Sandbox({str(other.directory)!r}, name={OTHER!r}, base={str(base_tree)!r})\n"
        "print('ready', flush=True)\n"
    )

    def killed(verb: str, after_s: float) -> None:
        with subprocess.Popen([sys.executable, "-c", code + verb], stdout=subprocess.PIPE) as process:
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
            time.sleep(after_s)
            process.kill()

    for after_s in (0.05, 0.1, 0.2, 0.4):
        killed("s.up(2)", after_s)
        other.up(2, within_s=60)
        assert all(answers(host.address) for host in other.hosts())
        killed("s.down()", after_s / 4)
        other.up(2, within_s=60)
        assert all(answers(host.address) for host in other.hosts())
        other.down()
        killed("s.up(2)", after_s)
        other.down()
        assert traces(other, OTHER) == []


def test_a_lost_keeper_is_repaired(sandbox: Sandbox) -> None:
    """The process above systemd-nspawn is killed: the host goes, `start` brings it back."""
    host = sandbox.host("h04")
    keeper = json.loads((host.place.folder / "state.json").read_text())["keeper"]
    os.kill(keeper["pid"], signal.SIGKILL)
    host.start()
    assert answers(host.address)


def test_two_that_come_up_at_once_get_two_subnets(other: Sandbox, tmp_path: Path, base_tree: Path) -> None:
    twin = Sandbox(tmp_path / "twin", name="dsv", base=base_tree)
    try:
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda made: made.up(1), (other, twin)))
        assert answers(other.host("h01").address)
        assert answers(twin.host("h01").address)
        assert other.place.subnet != twin.place.subnet
    finally:
        twin.down(purge=True)


def test_refusals_name_the_way_out(sandbox: Sandbox, other: Sandbox, tmp_path: Path, base_tree: Path) -> None:
    with pytest.raises(InputError, match="no host `h09` in the sandbox, there are: h01 h02 h03 h04"):
        sandbox.host("h09")
    with pytest.raises(InputError, match="65 hosts asked for"):
        other.up(65)
    other.up(1)
    with pytest.raises(InputError, match="has no limit"):
        other.host("h01").fill("/nvme")
    with pytest.raises(LauncherError, match="has the same name"):
        Sandbox(tmp_path / "twin", name=OTHER, base=base_tree).up(1)
    with pytest.raises(InputError, match="name `x` asked for"):
        Sandbox(other.directory, name="x", base=base_tree).up(1)
