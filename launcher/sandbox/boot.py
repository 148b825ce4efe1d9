"""How a host is put together and booted: overlay root, disks, systemd-nspawn; knows no faults."""

from __future__ import annotations

import os
import shlex
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from launcher.sandbox import cgroups, gpu, layer, mounts, processes, programs, state
from launcher.sandbox.places import HostPlace

ON_DISK = "disk"
# how systemd-nspawn says that the host asked for a reboot
REBOOT = 133
RUN_FILES = tuple(Path("/run/systemd/nspawn") / kind for kind in ("propagate", "unix-export"))


@dataclass(frozen=True, slots=True)
class Disks:
    """Sizes of a new host's disks: of a tmpfs (`512m`, `2g`), or `disk`: on this machine's, no limit."""

    root: str = "1g"
    nvme: str = ON_DISK


def make_disks(host: HostPlace, disks: Disks) -> None:
    """Make a host's folders and mounts, unless they are there."""
    for folder in (host.root, host.writable, host.nvme):
        folder.mkdir(parents=True, exist_ok=True)
    for folder, size in ((host.writable, disks.root), (host.nvme, disks.nvme)):
        if size != ON_DISK:
            mounts.tmpfs(folder, size=size, label=host.machine)
    upper, work = host.writable / "upper", host.writable / "work"
    if not (upper / "etc/hostname").exists():
        work.mkdir(exist_ok=True)
        if host.sandbox.devices:
            gpu.fill(upper, host.sandbox)
        _personalize(host, upper)
    place = host.sandbox
    lower = (gpu.ROOT, place.below) if place.devices else (place.layer, place.tree)
    mounts.overlay(host.root, lower=lower, upper=upper, work=work, label=host.machine)


def start(host: HostPlace) -> None:
    """Start systemd-nspawn above a host that does not run; returns at once."""
    cells = [shlex.quote(f"{folder}/cgroup.procs") for folder in cgroups.make(host.cgroup)]
    enter = "".join(f"echo 0 >{cell} || exit 1; " for cell in cells)
    loop = f'{enter}"$@"; while [ $? = {REBOOT} ]; do "$@"; done'
    words = ("/bin/sh", "-c", loop, f"sandbox-{host.machine}", *container(host))
    keeper = processes.spawn(words, log=host.console, environment=_environment())
    state.save_host(host.folder, replace(state.load_host(host.folder), keeper=keeper))


def container(host: HostPlace) -> tuple[str, ...]:
    """The command line that boots a host."""
    return (
        "systemd-nspawn",
        "--quiet",
        "--boot",
        f"--directory={host.root}",
        f"--machine={host.machine}",
        f"--hostname={host.name}",
        # this machine need not run systemd: no machined, no unit, no D-Bus
        "--register=no",
        "--keep-unit",
        "--link-journal=no",
        f"--network-namespace-path=/run/netns/{host.machine}",
        "--resolv-conf=off",
        "--timezone=off",
        "--console=pipe",
        "--capability=CAP_NET_ADMIN",
        # D-Bus complains below 64k, and engines open many files
        "--rlimit=RLIMIT_NOFILE=1024:524288",
        f"--bind-ro={host.sandbox.gpfs}:/gpfs",
        f"--bind={host.nvme}:/nvme",
        *(gpu.words(host.sandbox.devices) if host.sandbox.devices else ()),
    )


def power_off(host: HostPlace, *, init: processes.ProcessId | None) -> None:
    """Take the power: kill init, the kernel ends the rest; then whatever is left in the cgroup."""
    keeper = state.load_host(host.folder).keeper
    cgroups.freeze(host.cgroup, False)
    processes.end(init)
    if not processes.await_end(keeper, within_s=3):
        processes.end(keeper)
    cgroups.kill(host.cgroup)
    for folder in RUN_FILES:
        shutil.rmtree(folder / host.machine, ignore_errors=True)


def _personalize(host: HostPlace, upper: Path) -> None:
    """Host key, machine id and name: what differs between hosts before the first boot."""
    layer.make_key(host.saved_key, comment=host.name)
    key = upper / "etc/ssh/ssh_host_ed25519_key"
    programs.write(key, programs.read(host.saved_key), mode=0o600)
    programs.write(key.with_suffix(".pub"), programs.read(host.saved_key.with_suffix(".pub")))
    programs.write(upper / "etc/machine-id", f"{uuid.uuid4().hex}\n", mode=0o444)
    programs.write(upper / "etc/hostname", f"{host.name}\n")  # last: it says that the files are whole


def _environment() -> Mapping[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1",  # cgroup v2 inside, whatever this machine has
        "SYSTEMD_NSPAWN_LOCK": "0",
    }
