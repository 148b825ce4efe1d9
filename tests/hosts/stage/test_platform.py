"""A bare host through every role of a platform to one that serves, then ten drifts: found, named, healed.

One host for all tests of this file, in their order: each leaves it as the next one takes it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import own_apt
import pytest
import stand_in_packages
from stand_in_packages import KERNEL
from stub_fleet import DATA, Done, StubFleet, publish_model
from witness import active, said

from launcher.flows import mirror
from launcher.sandbox import Sandbox, SandboxHost
from launcher.sandbox.boot import Disks

ARCHIVE = "archive"
"""Below /gpfs: what the repositories of distribution and vendors are elsewhere."""
DESPITE = ("--despite", "rdma-rails,rdma-active,local-disk,shared-answers", "-m", "no NIC is played")
DRIFTS = f"""set -e; cd /gpfs/{ARCHIVE}
dpkg -i libgdrapi_2.5.2* libnvshmem3* libnccl2* nvidia-fabricmanager_580.173*
sed -i 's/^options nvidia //' /etc/modprobe.d/dsv32-nvidia.conf; update-initramfs -u
chmod 777 /usr/local/lib/dsv32
systemctl disable nvidia-fabricmanager
sed -i 's/= 1048576/= 65530/' /etc/sysctl.d/90-dsv32.conf
sed -i /LimitMEMLOCK/d /etc/systemd/system/dsv32-decode-0.service
systemctl unmask apt-daily-upgrade.timer; systemctl enable apt-daily-upgrade.timer
sed -i 's/Upgrade "0"/Upgrade "1"/' /etc/apt/apt.conf.d/20auto-upgrades
sed -n '/^Package: libgdrapi$/,/^$/p' /var/lib/dpkg/status >/var/lib/dpkg/updates/0001
echo all
"""
"""The last one is no drift: a host that lost power while dpkg wrote."""
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


BOOTS = [
    "doca-ofed/in-effect",
    "nic-tuning/cmdline-booted",
    "nvidia-driver/running",
    "nvidia-driver/stream-memory",
    "nvidia-driver/peer-mapping",
    "gdrcopy/loaded",
    "peermem/loaded",
]


class OnPlatform(StubFleet):
    """One host that answers users itself, on the platform of stand-ins."""

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def asked(self, *words: str) -> Done:
        """A command that tells JSON."""
        return self.run(*words, "--json", data=self.data)

    def steps(self) -> dict[str, str]:
        """Step → action of what is planned now."""
        return {step: action for _, step, action in self.asked("plan").changes}

    def wrong(self) -> set[str]:
        """Checks that find something."""
        return {f["id"] for f in self.asked("check").lines("check") if f["verdict"] == "wrong"}


@pytest.fixture(scope="module")
def bare(test_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnPlatform]:
    """One host with nothing of ours, and its platform on the shared file system, fetched by apt."""
    test_sandbox.down()
    test_sandbox.up(1, disks=Disks(nvme="512m"))
    folder = tmp_path_factory.mktemp("platform")
    publish(test_sandbox, folder / "trees")
    publish_model(test_sandbox.gpfs)
    shutil.copytree(DATA, folder / "data")
    platform = folder / "data/configs/platforms/stand-in.yaml"
    platform.write_text(platform.read_text().replace("KERNEL", KERNEL))
    stack = folder / "data/configs/stacks/stub.yaml"
    stack.write_text(stack.read_text() + 'variables: {cuda: "13.0"}\n')
    stubs = OnPlatform(test_sandbox, folder)
    pools = {"decode": {"hosts": ["h01"]}}
    stubs.write(platform="stand-in", hardware="h200", layout="stub-single", hosts={"h01": {}}, pools=pools)
    fetch(stubs)
    yield stubs
    test_sandbox.down()


def publish(sandbox: Sandbox, work: Path) -> None:
    """Stand-ins, and the real nftables, in an archive; the machine's own stand-in is installed."""
    folder, host = sandbox.gpfs / ARCHIVE, sandbox.host("h01")
    machine = stand_in_packages.publish(folder, work)
    mirror.fill(work / "real", {"nftables": ""}, status=status_of(host), tell=lambda *_: None)
    for deb in (work / "real").glob("*.deb"):
        shutil.copy(deb, folder)
    with (folder / "Packages").open("a") as index:
        index.write((work / "real/Packages").read_text())
    starts = "systemctl daemon-reload && systemctl start stand-in-machine gpfs"
    said(host, f"dpkg -i /gpfs/{ARCHIVE}/{machine.name} && {starts}")
    assert active(host, "stand-in-machine") == "active"


def status_of(host: SandboxHost) -> Path:
    """What dpkg knows of a bare host."""
    return host.place.root / "var/lib/dpkg/status"


def fetch(stubs: OnPlatform) -> None:
    """The platform, by the command that is for that."""
    config = own_apt.made(stubs.folder / "apt")
    own_apt.know(config, stubs.sandbox.gpfs / ARCHIVE)
    at = ("--to", str(stubs.sandbox.gpfs), "--status", str(status_of(stubs.host("h01"))))
    built = stubs.run("platform", "build", *at, data=stubs.data, APT_CONFIG=str(config))
    assert built.code == 0, built.stdout + built.stderr


def test_from_nothing_to_serving(bare: OnPlatform) -> None:
    """One boot for all roles; without leave to reboot, what waits is told."""
    host = bare.host("h01")
    assert [step for step, action in bare.steps().items() if action == "REBOOT"] == BOOTS
    waits = bare.up("--no-reboot", *DESPITE, data=bare.data)
    assert waits.code == 1
    assert "waits for a reboot" in waits.problems[0]["what"], waits.problems
    assert [step for step, action in bare.steps().items() if action == "REBOOT"] == BOOTS

    first = host.init
    done = bare.up(*DESPITE, data=bare.data)
    assert done.code == 0, done.stdout + done.stderr
    assert host.init != first
    assert bare.steps() == {}
    host.stop()
    host.start()
    until_s = time.monotonic() + 60
    while active(host, "dsv32-decode-0") != "active" and time.monotonic() < until_s:
        time.sleep(0.5)
    assert bare.steps() == {}, "a boot takes nothing back"
    assert "580.159.04" in said(host, "nvidia-smi --query-gpu=driver_version | head -1")
    assert "Enabled" in said(host, "nvidia-smi --query-gpu=persistence_mode")
    assert "tcp dport" not in said(host, "nft list table inet dsv32"), "users ask a pool alone themselves"
    assert not bare.wrong() & set(FOUND)


def test_ten_drifts_are_found_named_and_healed(bare: OnPlatform) -> None:
    """Between drift and check the host boots, as somebody else would have it: only then options count."""
    host = bare.host("h01")
    assert said(host, DRIFTS).endswith("all\n")
    host.stop()
    host.start()
    assert set(FOUND) <= bare.wrong()
    planned = bare.steps()
    assert {*FOUND.values(), "os-pinned/upgrades"} <= set(planned)
    assert planned["nvidia-driver/stream-memory"] == "REBOOT"

    drifted = host.init
    healed = bare.up("--below-minimum", *DESPITE, data=bare.data)
    assert healed.code == 0, healed.stdout + healed.stderr
    assert host.init != drifted
    assert bare.steps() == {}
    assert not bare.wrong() & set(FOUND)


def test_all_roles_taken_away_leave_what_others_may_need(bare: OnPlatform) -> None:
    """Refused under what serves, and where a role that stays needs one of them; then the host is bare."""
    host = bare.host("h01")
    needed = bare.asked("remove", "doca-ofed", "--yes")
    assert needed.code == 2
    assert {p["what"].split()[1] for p in needed.problems} == {"nic-tuning", "nvidia-driver"}
    serving = bare.asked("remove", "all", "--yes")
    assert serving.code == 6
    assert serving.problems[0]["do"] == "dsv32-launch down stub.yaml --limit h01"
    assert bare.asked("down", "--yes").code == 0

    booted = host.init
    gone = bare.asked("remove", "all", "--yes", "-m", "the host goes back")
    assert gone.code == 0, gone.stdout + gone.stderr
    assert host.init != booted
    assert bare.asked("remove", "all", "--yes").changes == []
    assert [step for step, action in bare.steps().items() if action == "REBOOT"] == BOOTS
    installed = said(host, "dpkg-query -Wf '${db:Status-Abbrev} ${Package}\\n'")
    assert "ii  chrony" in installed
    assert "nvidia" not in installed
    assert said(host, "apt-mark showhold") == ""
    assert said(host, "ls /etc/systemd/system/dsv32-* /etc/modprobe.d/dsv32* 2>/dev/null") == ""
