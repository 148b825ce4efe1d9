"""`check` on real hosts that look like H200 hosts: twelve faults over hosts and pairs, and no false alarm.

DSV32_TEST_CHECK_HOSTS=16 pytest -s tests/hosts/look/test_check_faults.py    # without it four
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import h200_fleet
import pytest
from healthy_host import DRIVER
from stub_fleet import DISKS, Done, StubFleet

from launcher.load import load
from launcher.resolve import resolve
from launcher.sandbox import Sandbox, SandboxHost
from launcher.sandbox.faults import FOLDER, kernel_says

HOSTS = int(os.environ.get("DSV32_TEST_CHECK_HOSTS", "4"))
XID = "NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
MEMORY = "/run/dressed/proc/meminfo"
PORT = "/sys/class/infiniband/mlx5_3/ports/1/state"
UPGRADES = "/etc/systemd/system/unattended-upgrades.service"
Plant = Callable[[StubFleet, SandboxHost, SandboxHost], object]


@dataclass(frozen=True)
class Fault:
    """What is planted on one host, and what is then said."""

    plant: Plant
    owner: str
    do: str
    """Of the remedy."""
    checks: tuple[str, ...]
    pair: bool = False
    """These checks name the next host, too."""


def shell(script: str) -> Plant:
    """A script on the host; `$NEXT` is its next one's address."""

    def plant(fleet: StubFleet, host: SandboxHost, following: SandboxHost) -> None:
        done = host.exec("sh", "-ec", f"NEXT={following.address}\n{script}")
        assert done.returncode == 0, done.stderr

    return plant


def recorded(program: str, change: str) -> Plant:
    """Another answer of a program that plays back."""
    return shell(f"sed -i '{change}' {FOLDER}/{program}/*")


def older_package(fleet: StubFleet, host: SandboxHost, following: SandboxHost) -> None:
    name = f"nvidia-fabricmanager-{DRIVER[:3]}"
    path = h200_fleet.deb(fleet.sandbox, fleet.folder, name, "580.95.05-0ubuntu1", under="older")
    assert host.exec("dpkg", "--force-hold", "-i", path).returncode == 0


def xid(fleet: StubFleet, host: SandboxHost, following: SandboxHost) -> None:
    kernel_says(host, [XID])


SQUATTER = "systemd-run --unit=jupyter python3 -m http.server 8000"
ENABLED = f"printf '[Service]\\nExecStart=/bin/true\\n[Install]\\nWantedBy=multi-user.target\\n' >{UPGRADES}"
SWAP = f"sed 's/^SwapTotal: .*/SwapTotal:       8388604 kB/' {MEMORY} >/run/m; cat /run/m >{MEMORY}"
FAULTS = (
    Fault(
        shell("systemctl stop nvidia-fabricmanager"), "driver package", "enable --now", ("fabric-manager",)
    ),
    Fault(older_package, "driver package", "apt-get install", ("fabric-manager-version",)),
    Fault(
        recorded("nvidia-smi", "/^3, /s/Enabled, Enabled/Enabled, Disabled/"),
        *("host image", "nvidia-smi", ("ecc-mode",)),
    ),
    Fault(shell(SWAP), "host image", "swapoff -a", ("swap-off",)),
    Fault(shell("ip link set eth0 mtu 1400"), "network team", "ip link set", ("mtu-same",)),
    Fault(shell('ip route add blackhole "$NEXT"'), "network team", "open", ("peers-reachable",), pair=True),
    Fault(recorded("show_gids", r"s/\t1\t3\t/\t1\t5\t/"), "network team", "netplan", ("gids-same",)),
    Fault(recorded("chronyc", "s/0.000012/0.312345/"), "network team", "chronyc sources", ("time-offset",)),
    Fault(shell(SQUATTER), "host image", "stop what listens", ("ports-free",)),
    Fault(
        shell(f"{ENABLED}; systemctl daemon-reload; systemctl enable unattended-upgrades"),
        *("host image", "systemctl disable", ("unattended-upgrades",)),
    ),
    Fault(xid, "hardware", "runbook run gpu-xid", ("xids",)),
    Fault(shell(f"echo 1: DOWN >{PORT}"), "network team", "cable", ("rdma-active", "rdma-port-down")),
)
NOT_HERE = "peermem-loaded"
"""A note of every host: a kernel without modules, as a sandbox may have, has no list of them to lie over."""


@pytest.fixture
def looks_like_h200(test_sandbox: Sandbox, tmp_path: Path) -> Iterator[StubFleet]:
    """Hosts of an H200 fleet, new before and gone afterwards: what they wear cannot be taken off."""
    test_sandbox.down()
    test_sandbox.up(HOSTS, disks=DISKS)
    fleet = StubFleet(test_sandbox, tmp_path)
    names = [host.name for host in fleet.hosts]
    half = len(names) // 2
    pools = {"prefill": {"hosts": names[:half]}, "decode": {"hosts": names[half:]}}
    path = fleet.write(
        stack="current",
        hardware="h200",
        model="deepseek-v3.2",
        layout="current-2p1d",
        pools={**pools, "router": {"hosts": names[:1]}},
    )
    wanted = resolve(load(path))
    loop = h200_fleet.build(test_sandbox, tmp_path)
    try:
        with ThreadPoolExecutor(4) as threads:
            worn = [
                threads.submit(h200_fleet.dress, host, number, wanted, loop)
                for number, host in enumerate(fleet.hosts)
            ]
        for one in worn:
            one.result()
        yield fleet
    finally:
        test_sandbox.down()
        h200_fleet.clear(test_sandbox, loop)


def wrong(done: Done) -> Mapping[str, set[str]]:
    """Check → hosts of what is wrong."""
    told = [line for line in done.lines("check") if line["verdict"] == "wrong" and line["id"] != NOT_HERE]
    return {
        name: {h for t in told if t["id"] == name for h in t["hosts"]} for name in {t["id"] for t in told}
    }


def test_twelve_faults_are_named_with_owner_and_remedy_and_nothing_else(
    looks_like_h200: StubFleet,
) -> None:
    fleet = looks_like_h200
    clean = fleet.run("check", "--json")
    assert (clean.code, wrong(clean)) == (0, {}), clean.stdout + clean.stderr
    expected: dict[str, set[str]] = {}
    for place, fault in enumerate(FAULTS, 1):
        host, following = fleet.hosts[place % HOSTS], fleet.hosts[(place + 1) % HOSTS]
        fault.plant(fleet, host, following)
        for check in fault.checks:
            expected[check] = {host.name, *([following.name] if fault.pair else [])}
    broken = fleet.run("check", "--json")
    found = dict(wrong(broken))
    assert broken.code == 1, broken.stderr
    (mtu,) = expected["mtu-same"]
    assert found.pop("peers-mtu") == {host.name for host in fleet.hosts} - {mtu}
    assert found == expected
    for fault in FAULTS:
        for told in (t for t in broken.lines("check") if t["id"] in fault.checks):
            assert told["owner"] == fault.owner, told
            assert fault.do in told["remedy"], told
    text = fleet.run("check").stdout
    print(text)
    assert f"MTU of the serving interfaces: {HOSTS - 1} of {HOSTS} hosts 1500, {mtu} 1400" in text
    assert f"packets of full size to other hosts: {mtu} cut, expected whole" in text
