"""Hosts with this machine's GPUs: its programs and device files, the base tree's services; no trace left."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher.model.problem import InputError, LauncherError
from launcher.sandbox import Sandbox

NULL = os.makedev(1, 3)


@pytest.fixture
def devices(tmp_path: Path) -> Path:
    """A folder like /dev of a machine with one GPU; its files are /dev/null."""
    for name in ("nvidia0", "nvidiactl", "nvidia-caps/nvidia-cap1"):
        file = tmp_path / "dev" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        os.mknod(file, 0o666 | stat.S_IFCHR, NULL)
    return tmp_path / "dev"


@pytest.fixture
def sandbox(base_tree: Path, tmp_path: Path) -> Iterator[Sandbox]:
    made = Sandbox(tmp_path / "gpu", name="dsg", base=base_tree)
    yield made
    made.down(purge=True)


def said(sandbox: Sandbox, command: str) -> str:
    words = ["ssh", "-F", str(sandbox.ssh_config), "h01", command]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout.strip()


def test_a_host_has_the_machines_gpus_and_programs_and_the_base_trees_services(
    sandbox: Sandbox, devices: Path, base_tree: Path
) -> None:
    mine = Path("/usr/local/dsv32-test-program")
    mine.write_text("#!/bin/sh\necho the machine\n")
    mine.chmod(0o755)
    try:
        sandbox.up(1, devices=devices)
        assert said(sandbox, str(mine)) == "the machine"
        assert said(sandbox, f"rm {mine}; ls {mine.parent}").find(mine.name) == -1
        assert mine.exists()  # a host writes to its own root alone
    finally:
        mine.unlink()
    files = "/dev/nvidia0 /dev/nvidiactl /dev/nvidia-caps/nvidia-cap1"
    assert said(sandbox, f"stat -c %t:%T {files}").split() == ["1:3"] * 3
    assert said(sandbox, "systemctl is-system-running") == "running"
    units = (base_tree / "tree/etc/systemd/system").rglob("*.*")
    started = {path.name for path in units if path.is_symlink()}
    assert (
        set(said(sandbox, "find /etc/systemd/system -name '*.*' -type l -printf '%f\n'").split()) == started
    )
    accounts = (base_tree / "tree/etc/passwd").read_text()  # systemd adds those of the machine's packages
    assert said(sandbox, "cat /etc/passwd").startswith(accounts.strip())
    sandbox.host("h01").kill()
    sandbox.up(1)
    assert said(sandbox, "test -c /dev/nvidia0 && hostname") == "h01"
    sandbox.down()
    assert str(sandbox.directory) not in Path("/proc/mounts").read_text()


def test_hosts_with_gpus_are_refused_where_there_are_none(sandbox: Sandbox, devices: Path) -> None:
    (devices / "nvidia0").unlink()
    with pytest.raises(LauncherError, match="no GPU on this machine"):
        sandbox.up(1, devices=devices)
    assert not sandbox.hosts()


def test_hosts_without_gpus_do_not_get_them_by_a_second_up(sandbox: Sandbox, devices: Path) -> None:
    sandbox.up(1)
    with pytest.raises(InputError, match="hosts with GPUs asked for"):
        sandbox.up(1, devices=devices)
