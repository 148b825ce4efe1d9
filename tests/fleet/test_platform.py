"""A bare host through every role of a platform to one that serves, then ten drifts: found, named, healed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import stand_in_packages
from stand_in_packages import KERNEL
from stub_fleet import DATA, Done, StubFleet, publish_model
from witness import active, said

from launcher.flows import mirror
from launcher.sandbox import Sandbox

pytestmark = pytest.mark.fleet
DEBS = "platforms/stand-in/debs"
DESPITE = ("--despite", "rdma-rails,rdma-active", "-m", "no NIC is played")
DRIFTS = f"""set -e; cd /gpfs/{DEBS}
dpkg -i libgdrapi_2.5.2* libnvshmem3* libnccl2* nvidia-fabricmanager_580.173*
sed -i 's/^options nvidia //' /etc/modprobe.d/dsv32-nvidia.conf; update-initramfs -u
chmod 777 /usr/local/lib/dsv32
systemctl disable nvidia-fabricmanager
sed -i 's/= 1048576/= 65530/' /etc/sysctl.d/90-dsv32.conf
sed -i /LimitMEMLOCK/d /etc/systemd/system/dsv32-decode-0.service
systemctl unmask apt-daily-upgrade.timer; systemctl enable apt-daily-upgrade.timer
sed -i 's/Upgrade "0"/Upgrade "1"/' /etc/apt/apt.conf.d/20auto-upgrades
echo all
"""
FOUND = {
    "gdrcopy-version": "gdrcopy/packages",
    "module-options-read": "nvidia-driver/options",
    "programs-ours": "os-base/programs",
    "fabric-manager-at-boot": "fabricmanager/unit",
    "max-map-count": "os-base/max-map-count",
    "nvshmem-beside": "nvshmem/packages",
    "nccl-beside": "deepep/nccl",
    "engine-memlock": "engine/unit[decode-0]",
    "upgrade-timer": "os-pinned/upgrade-timer",
    "fabric-manager-version": "nvidia-driver/packages",
}
"""Drift, by the check that finds it → the step that the plan names."""


@pytest.fixture
def bare(fresh_sandbox: Sandbox, tmp_path: Path) -> StubFleet:
    """One host with nothing of ours, and packages for it on the shared file system."""
    folder = fresh_sandbox.gpfs / DEBS
    status = fresh_sandbox.host("h01").place.root / "var/lib/dpkg/status"
    mirror.fill(folder.parent / "real", {"nftables": ""}, status=status, tell=lambda *_: None)
    machine = stand_in_packages.publish(folder, tmp_path / "trees")
    for deb in (folder.parent / "real").glob("*.deb"):
        shutil.copy(deb, folder)
    with (folder / "Packages").open("a") as index:
        index.write((folder.parent / "real/Packages").read_text())
    host = fresh_sandbox.host("h01")
    said(host, f"dpkg -i /gpfs/{DEBS}/{machine.name} && systemctl daemon-reload && systemctl start stand-in-machine gpfs")
    assert active(host, "stand-in-machine") == "active"
    data = tmp_path / "data"
    shutil.copytree(DATA, data)
    platform = data / "configs/platforms/stand-in.yaml"
    platform.write_text(platform.read_text().replace("KERNEL", KERNEL))
    publish_model(fresh_sandbox.gpfs)
    stubs = StubFleet(fresh_sandbox, tmp_path)
    stubs.write(
        platform="stand-in",
        hardware="h200",
        layout="stub-single",
        hosts={"h01": {}},
        pools={"decode": {"hosts": ["h01"]}},
    )
    return stubs


def wrong(done: Done) -> set[str]:
    """Checks that found something."""
    return {f["id"] for f in done.lines("check") if f["verdict"] == "wrong"}


def test_from_nothing_to_serving_and_back_after_ten_drifts(bare: StubFleet, tmp_path: Path) -> None:
    host, data = bare.host("h01"), tmp_path / "data"
    reboots = [s for _, s, a in bare.plan(data=data).changes if a == "REBOOT"]
    assert reboots == [
        "nic-tuning/cmdline-booted",
        "doca-ofed/in-effect",
        "nvidia-driver/running",
        "nvidia-driver/stream-memory",
        "nvidia-driver/peer-mapping",
        "gdrcopy/loaded",
        "peermem/loaded",
    ]
    waits = bare.up("--no-reboot", *DESPITE, data=data)
    assert waits.code == 1
    assert "waits for a reboot" in waits.problems[0]["what"]
    assert {s for _, s, a in bare.plan(data=data).changes if a == "REBOOT"} == set(reboots)

    first = host.init
    done = bare.up(*DESPITE, data=data)
    assert done.code == 0, done.stdout + done.stderr
    booted = host.init
    assert booted != first
    assert bare.plan(data=data).changes == []
    assert "580.159.04" in said(host, "nvidia-smi --query-gpu=driver_version | head -1")
    assert "Enabled" in said(host, "nvidia-smi --query-gpu=persistence_mode")
    assert "tcp dport" not in said(host, "nft list table inet dsv32"), "users ask a pool alone themselves"
    straight = wrong(bare.run("check", "--json", data=data))
    assert not straight & set(FOUND)

    assert said(host, DRIFTS).endswith("all\n")
    host.stop()
    host.start()
    assert wrong(bare.run("check", "--json", data=data)) - straight >= set(FOUND)
    plan = bare.plan(data=data)
    assert {s for _, s, _ in plan.changes} >= set(FOUND.values())
    assert "os-pinned/upgrades" in {s for _, s, _ in plan.changes}
    healed = bare.up("--below-minimum", *DESPITE, data=data)
    assert healed.code == 0, healed.stdout + healed.stderr
    assert bare.plan(data=data).changes == []
    assert wrong(bare.run("check", "--json", data=data)) == straight
