"""Four real hosts for every test of this folder, healthy before each."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from routed_fleet import RoutedFleet, routed_fleet
from stub_fleet import DISKS, StubFleet, publish_model

from launcher.model.problem import LauncherError
from launcher.sandbox import Sandbox
from launcher.sandbox.base import require_machine

HOSTS = 4


@pytest.fixture(scope="session")
def base_tree() -> Path:
    """Folder of the base tree: that of the usual sandbox, so that it is built once for people and tests."""
    usual = Path(os.environ.get("DSV32_SANDBOX_DIR", "/var/tmp/dsv32-sandbox"))
    return Path(os.environ.get("DSV32_SANDBOX_BASE", usual / "base"))


@pytest.fixture(scope="session")
def test_sandbox(base_tree: Path) -> Iterator[Sandbox]:
    """The sandbox behind `sandbox`; tests take that one."""
    try:
        require_machine()
    except LauncherError as error:
        pytest.skip(f"no sandbox on this machine: {error}")
    # two test sessions beside each other need two names
    name = os.environ.get("DSV32_TEST_SANDBOX_NAME", "dst")
    directory = Path(f"/var/tmp/dsv32-sandbox-{name}")
    with Path(f"{directory}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = Sandbox(
            directory, name=name, base=base_tree, mirror=os.environ.get("DSV32_SANDBOX_MIRROR", "")
        )
        made.down(purge=True)
        try:
            yield made
        finally:
            made.down(purge=True)


@pytest.fixture
def sandbox(test_sandbox: Sandbox) -> Sandbox:
    """Four hosts, `h01` to `h04`, up and without faults: `up` before each test heals, thaws, frees and boots.

    What earlier tests wrote into the hosts is still there: use names of your own, or take `fresh_sandbox`.
    Useful of `sandbox.host("h01")`: `.exec("cat", "/etc/x").stdout` (no SSH: the independent witness),
    `.address`, `.cut(silent=True)`, `.heal()`, `.kill()`, `.start()`, `.freeze(True)`, `.freeze(False)`,
    `.fill("/nvme")`, `.fill("/")`, `.free()`, `.delay("20ms", "loss", "1%")`, `.undelay()`.
    Log in with `sandbox.ssh_config`: as root, as `ops` (sudo without a password), as `opspw` (sudo with
    `launcher.sandbox.base.SUDO_PASSWORD`). `sandbox.gpfs` is `/gpfs` of the hosts, writable here.
    `/nvme` is a tmpfs of 512 MiB, `/` one of 1 GiB.
    """
    test_sandbox.up(HOSTS, disks=DISKS)
    return test_sandbox


@pytest.fixture
def fresh_sandbox(test_sandbox: Sandbox) -> Sandbox:
    """The same, but the hosts are new (and have new keys): nothing of earlier tests is on them."""
    test_sandbox.down()
    test_sandbox.up(HOSTS, disks=DISKS)
    return test_sandbox


@pytest.fixture
def stubs(sandbox: Sandbox, tmp_path: Path) -> StubFleet:
    """A deployment of stubs on those hosts, in whatever state earlier tests left it."""
    publish_model(sandbox.gpfs)
    return StubFleet(sandbox, tmp_path)


@pytest.fixture
def routed(sandbox: Sandbox, tmp_path: Path) -> RoutedFleet:
    """Two prefill and two decode stubs behind the real router and front, up."""
    return routed_fleet(sandbox, tmp_path)
