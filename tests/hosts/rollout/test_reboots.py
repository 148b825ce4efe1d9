"""A role that needs a reboot, on a fleet that serves, with the real router and front."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from routed_fleet import RoutedFleet
from stub_fleet import DATA
from witness import said

from launcher.sandbox import SandboxHost

ROLE = """about: An option that the kernel takes when it boots.
stage: host
pools: [decode]
halts: true
steps:
  option: {kind: file, path: /etc/modprobe.d/dsv32-stand-in.conf, content: "options stand_in depth=4\\n"}
  in-effect: {kind: boot, path: /run/stand-in-kernel, read: 'depth=(\\d+)', equals: "4", within_s: WITHIN_S}
"""
# stands in for a kernel module, which reads its options once: all hosts of a sandbox have one kernel
KERNEL = """cat >/etc/systemd/system/stand-in-kernel.service <<END
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'cat /etc/modprobe.d/dsv32-stand-in.conf >/run/stand-in-kernel'
[Install]
WantedBy=sysinit.target
END
systemctl enable stand-in-kernel.service; rm -f /etc/modprobe.d/dsv32-stand-in.conf /run/stand-in-kernel
"""
STEPS = ["stand-in-kernel/option", "stand-in-kernel/in-effect"]


@pytest.fixture
def data(routed: RoutedFleet, tmp_path: Path) -> Path:
    """The stubs' data, and a stack with a role that needs a reboot of the hosts that decode."""
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder)
    (folder / "roles/stand-in-kernel").mkdir()
    write_role(folder, within_s=90)
    stack = folder / "configs/stacks/stub-routed.yaml"
    stack.write_text(stack.read_text().replace("roles: [os-base,", "roles: [os-base, stand-in-kernel,"))
    for name in ("h02", "h03"):
        said(routed.host(name), KERNEL)
    return folder


def write_role(data: Path, *, within_s: int) -> None:
    """The role, whose hosts may take so long to boot."""
    (data / "roles/stand-in-kernel/role.yaml").write_text(ROLE.replace("WITHIN_S", str(within_s)))


def boot_of(host: SandboxHost) -> str:
    """A name for this life of a host: its init, as the machine around it counts processes."""
    init = host.init
    assert init
    return f"{init}"


def test_is_rolled_through_without_a_failed_request(routed: RoutedFleet, data: Path) -> None:
    """First the host that goes first does not come back: it alone is lost, and the next run goes on."""
    plan = routed.plan(data=data)
    hosts = [(h, s) for h, s, a in plan.changes if a != "RESTART"]
    assert hosts == [(h, s) for h in ("h02", "h03") for s in STEPS]
    assert {a for _, s, a in plan.changes if s == STEPS[1]} == {"REBOOT"}
    assert {h for h, _, a in plan.changes if a == "RESTART"} == {"h02", "h03"}, (
        "engines stop, and start again"
    )
    (told,) = plan.lines("plan")
    assert [(m["instances"], m["boots"]) for m in told["moves"]] == [
        (["decode-0"], ["h02"]),
        (["decode-1"], ["h03"]),
    ]
    before = {host.name: boot_of(host) for host in routed.hosts}

    kept = routed.up("--no-reboot", data=data)
    assert kept.code == 1
    assert {p["where"] for p in kept.problems} == {"h02", "h03"}
    assert all("absent in the running kernel, wanted 4" in p["why"] for p in kept.problems)
    assert routed.plan(data=data).changes == plan.changes, "nothing is changed under what runs"

    write_role(data, within_s=15)
    said(routed.host("h02"), "systemctl disable ssh.service ssh.socket")
    with routed.users() as load:
        stuck = routed.up(data=data)
        assert stuck.code == 1
        (lost,) = [p for p in stuck.problems if "did not come back" in p["what"]]
        assert lost["where"] == "h02"
        assert "console" in lost["do"]
        assert boot_of(routed.host("h03")) == before["h03"], "the rest is untouched"
        print(f"a host that does not come back: {load}")
        assert not load.failed

        write_role(data, within_s=90)
        said(routed.host("h02"), "systemctl enable --now ssh.service")
        done = routed.up(data=data)
    print(f"a reboot of both hosts that decode: {load}")
    assert done.code == 0, done.stdout + done.stderr
    assert not load.failed
    moves = done.lines("plan")[0]["moves"]
    assert [m["instances"] for m in moves if m["stops"]] == [["decode-0"], ["decode-1"]]
    assert [e["data"]["number"] for e in routed.events("move-started")] == list(range(len(moves)))
    after = {host.name: boot_of(host) for host in routed.hosts}
    assert {name for name in after if after[name] != before[name]} == {"h02", "h03"}
    assert routed.plan(data=data).changes == []
