"""`check` on real hosts: faults of hosts and pairs, GPUs played back from an H200, and what `up` refuses."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import healthy_host
import pytest
from stub_fleet import Done, StubFleet

from launcher.sandbox import SandboxHost

pytestmark = pytest.mark.fleet

GPU_CHECKS = (
    "gpu-count",
    "driver-same",
    "driver-version",
    "ecc-mode",
    "fabric-manager-version",
    "fabric-manager",
    "gpu-topology",
    "nvlinks",
    "rows-failed",
    "persistence",
)
QUERIES = (
    ("-L",),
    ("nvlink", "-s"),
    ("topo", "-m"),
    ("--query-gpu",),
    ("--query-remapped-rows",),
)
PLAYER = """#!/bin/sh
case "$1" in
  --query-*) exec cat "/opt/h200/${1%%=*}";;
  *) exec cat "/opt/h200/$1 $2";;
esac
"""
MANAGER = "[Service]\nExecStart=/bin/sleep infinity\n"


def wrong(done: Done) -> dict[str, list[str]]:
    """Check → hosts of what is wrong."""
    found: dict[str, set[str]] = {}
    for told in done.lines("check"):
        if told["verdict"] == "wrong":
            found.setdefault(told["id"], set()).update(told["hosts"])
    return {name: sorted(hosts) for name, hosts in found.items()}


@pytest.fixture
def still(stubs: StubFleet) -> Iterator[StubFleet]:
    """Hosts that serve nothing, put right afterwards."""
    for host in stubs.hosts:
        host.exec("sh", "-c", "systemctl stop 'dsv32-*'; ip link set eth0 mtu 1500")
    yield stubs
    for host in stubs.hosts:
        undo = "ip link set eth0 mtu 1500; ip route flush type blackhole; systemctl stop squatter"
        host.exec("sh", "-c", f"{undo}; rm -rf /opt/h200 /usr/local/bin/nvidia-smi")


def test_faults_of_hosts_and_pairs_are_named_and_nothing_else(still: StubFleet) -> None:
    clean = still.run("check", "--json")
    assert (clean.code, wrong(clean)) == (0, {}), clean.stdout
    addresses = {host.name: host.address for host in still.hosts}
    still.host("h02").exec("ip", "route", "add", "blackhole", addresses["h03"])
    still.host("h04").exec("ip", "link", "set", "eth0", "mtu", "1400")
    squatter = ("systemd-run", "--unit=squatter", "python3", "-m", "http.server", "8000")
    still.host("h01").exec(*squatter)
    broken = still.run("check", "--json")
    found = wrong(broken)
    assert broken.code == 1, broken.stdout
    assert found.pop("mtu-same") == ["h04"]
    assert found.pop("ports-free") == ["h01"]
    assert {"h01"} < set(found.pop("peers-mtu"))
    assert found.pop("peers-reachable") == ["h02", "h03"]
    assert found == {}
    told = still.run("check").stdout
    assert "MTU of the serving interfaces: 3 of 4 hosts 1500, h04 1400" in told
    assert "owner   network team" in told
    up_refuses(still)


def up_refuses(still: StubFleet) -> None:
    """Nothing is changed while it is red, unless it is meant; and that is written down with its reason."""
    before = still.state()
    refused = still.up()
    assert refused.code == 1
    assert {"peers-reachable", "peers-mtu", "ports-free"} == {
        p["more"].rpartition(" ")[2] for p in refused.problems
    }
    assert still.state() == before
    still.host("h02").exec("ip", "route", "flush", "type", "blackhole")
    still.host("h01").exec("systemctl", "stop", "squatter")
    meant = still.up("--despite", "peers-mtu", "-m", "the old switch")
    assert meant.code == 0, meant.stderr
    assert [e["subject"] for e in still.events("despite")] == ["peers-mtu"]
    assert "the old switch" in still.run("audit", "--json").stdout


def test_gpus_as_a_real_host_tells_of_them(still: StubFleet, tmp_path: Path) -> None:
    for host in still.hosts:
        driver = "580.95.05" if host.name == "h02" else healthy_host.DRIVER
        play(host, driver, tmp_path, still)
    still.host("h01").exec("sed", "-i", "$d", "/opt/h200/-L ")
    still.host("h03").exec("systemctl", "stop", "nvidia-fabricmanager")
    still.host("h04").exec(
        "sed", "-i", "4s/, Enabled, Enabled,/, Enabled, Disabled,/", "/opt/h200/--query-gpu"
    )
    pools = {
        "prefill": {"hosts": ["h01", "h02"]},
        "decode": {"hosts": ["h03", "h04"]},
        "router": {"hosts": ["h01"]},
    }
    still.write(stack="current", hardware="h200", model="deepseek-v3.2", layout="min-1p1d", pools=pools)
    done = still.run("check", "--json", "--only", ",".join(GPU_CHECKS))
    assert done.code == 1, done.stderr
    assert wrong(done) == {
        "gpu-count": ["h01"],
        "driver-same": ["h02"],
        "fabric-manager": ["h03"],
        "ecc-mode": ["h04"],
    }
    told = still.run("check", "--only", "driver-same,ecc-mode").stdout
    assert "driver of all hosts: 3 of 4 hosts 580.159.04, h02 580.95.05" in told
    assert "ECC: GPU 3 Disabled, expected Enabled" in told


def play(host: SandboxHost, driver: str, folder: Path, stubs: StubFleet) -> None:
    """Give a host an nvidia-smi that plays back, a fabric manager's unit, and its package."""
    host.exec("mkdir", "-p", "/opt/h200")
    for words in QUERIES:
        name = words[0] if words[0].startswith("--") else f"{words[0]} {' '.join(words[1:])}"
        host.exec("tee", f"/opt/h200/{name}", stdin=healthy_host.nvidia_smi(words, driver=driver))
    host.exec("tee", "/usr/local/bin/nvidia-smi", stdin=PLAYER)
    host.exec("chmod", "755", "/usr/local/bin/nvidia-smi")
    package = folder / driver
    (package / "DEBIAN").mkdir(parents=True, exist_ok=True)
    control = f"Package: nvidia-fabricmanager\nVersion: {driver}-1\nArchitecture: all\n"
    control += "Maintainer: nobody\nDescription: a stand-in\n"
    (package / "DEBIAN/control").write_text(control)
    made = stubs.sandbox.gpfs / f"fabricmanager-{driver}.deb"
    subprocess.run(["dpkg-deb", "-b", package, made], check=True, stdout=subprocess.DEVNULL)
    host.exec("dpkg", "-i", f"/gpfs/{made.name}")
    host.exec("tee", "/etc/systemd/system/nvidia-fabricmanager.service", stdin=MANAGER)
    host.exec("sh", "-c", "systemctl daemon-reload; systemctl start nvidia-fabricmanager")
