"""Real hosts that look like healthy H200 hosts to every check: what hardware would say is played back.

Real are systemd, dpkg, journald, the network, mounts, the disk's file system and every other file.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import healthy_host

from launcher.checks.asked import asked_of
from launcher.flows.check import all_checks, named
from launcher.model.facts import Probe
from launcher.model.wish import Wanted
from launcher.sandbox import Sandbox, SandboxHost
from launcher.sandbox.faults import stand_in

REAL = ("ip", "journalctl", "ps", "systemctl", "systemd-analyze")
"""Programs that say of a sandbox host what is so there."""
OWN = ("/etc/hosts", "/etc/machine-id", "/proc/sys/net/ipv4/ip_local_port_range")
LAYERED = ("/sys/class", "/proc/driver")
KERNELS = ("/proc/", "/sys/")
PACKAGES = {
    **{name: version for _, name, version in healthy_host.packages(["*"])},
    "libibverbs1": "50.0-2ubuntu0.2",
}
UNIT = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
CUDA = "int cuInit(unsigned flags) { return 0; }\n"
GIDS = "{nic}\t1\t{index}\t0000:0000:0000:0000:0000:ffff:0a00:000b\t10.0.0.11  \tv2\teth2\n"
OS_RELEASE = 'ID=ubuntu\nVERSION_ID="24.04"\n'
DRESS = """
set -e
kernel=$(uname -r)
mknod /dev/nvme-stand-in b 7 {loop}; mount /dev/nvme-stand-in /nvme
mount -o remount,size=80g /dev/shm; mount -t tmpfs -o size=20g tmp /tmp
mkdir -p /dev/infiniband /usr/lpp/mmfs/bin
for n in 0 1 2 3 4 5 6 7; do touch /dev/infiniband/uverbs$n; done
for name in mmgetstate mmhealth mmdiag; do ln -s /usr/local/bin/$name /usr/lpp/mmfs/bin/; done
cp /gpfs/libcuda.so.1 /usr/lib/x86_64-linux-gnu/
dpkg --force-depends -i /gpfs/debs/*.deb
for name in {held}; do echo "$name hold"; done | dpkg --set-selections
systemctl daemon-reload; systemctl enable --now nvidia-fabricmanager
"""


def gids(index: int) -> str:
    """What show_gids prints of hosts whose rails have one RoCE address each."""
    return "".join(GIDS.format(nic=f"mlx5_{n}", index=index) for n in healthy_host.GPUS)


def build(sandbox: Sandbox, folder: Path) -> int:
    """Packages and a library for all hosts, and a disk of 200 GiB that takes none: its loop device."""
    for name, version in PACKAGES.items():
        deb(sandbox, folder, name, version)
    (folder / "cuda.c").write_text(CUDA)
    run("gcc", "-shared", "-o", sandbox.gpfs / "libcuda.so.1", folder / "cuda.c")
    run("truncate", "-s", "200G", folder / "disk")
    run("mkfs.ext4", "-q", "-E", "lazy_itable_init=1,nodiscard", "-O", "^has_journal", folder / "disk")
    return int(run("losetup", "--find", "--show", folder / "disk").strip().removeprefix("/dev/loop"))


def clear(sandbox: Sandbox, loop: int) -> None:
    """Take that away again; hosts that have it are down."""
    run("losetup", "-d", f"/dev/loop{loop}")
    (sandbox.gpfs / "libcuda.so.1").unlink()
    for folder in ("debs", "older"):
        shutil.rmtree(sandbox.gpfs / folder, ignore_errors=True)


def deb(sandbox: Sandbox, folder: Path, name: str, version: str, *, under: str = "debs") -> str:
    """An empty package; its path on hosts."""
    made = sandbox.gpfs / under / f"{name}.deb"
    made.parent.mkdir(exist_ok=True)
    (folder / name / "DEBIAN").mkdir(parents=True, exist_ok=True)
    control = (
        f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: nobody\nDescription: none\n"
    )
    (folder / name / "DEBIAN/control").write_text(control)
    run("dpkg-deb", "-b", folder / name, made)
    return f"/gpfs/{under}/{name}.deb"


def run(*words: str | Path) -> str:
    return subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE).stdout


def dress(host: SandboxHost, number: int, wanted: Wanted, loop: int) -> None:
    """Let one host look like host `number` of healthy ones to all that checks ask of it."""
    asked = asked_of(named([], all_checks()), wanted, [host.name])
    probes = dict.fromkeys(probe for a in asked for probe in a.probes)
    kernel = host.exec("uname", "-r").stdout.strip()
    texts = dict(files(probes, number, kernel))
    layered = {path: text for path, text in texts.items() if path.startswith(LAYERED)}
    stand_in(host, programs(probes, host.address, kernel), layered)
    script = "".join(placed(path, text) for path, text in texts.items() if path not in layered)
    dressed = DRESS.format(loop=loop, held=" ".join(set(PACKAGES) - {"libibverbs1"}))
    unit = f"cat >/etc/systemd/system/nvidia-fabricmanager.service <<'E'\n{UNIT}E\n"
    done = host.exec("sh", stdin=unit + dressed + script)
    assert done.returncode == 0, done.stderr


def programs(probes: Iterable[Probe], address: str, kernel: str) -> Mapping[str, Mapping[str, str]]:
    """Program → words → what it says, of the running kernel where it names one."""
    told: dict[str, dict[str, str]] = {"show_gids": {"": gids(3)}}
    for probe in probes:
        if probe.kind == "command" and (name := probe.args[0][0].rpartition("/")[2]) not in REAL:
            text = healthy_host.commands(probe.args[0], address)
            if text is not None:
                told.setdefault(name, {})[" ".join(probe.args[0][1:])] = text.replace(
                    healthy_host.KERNEL, kernel
                )
    return told


def files(probes: Iterable[Probe], number: int, kernel: str) -> Iterator[tuple[str, str]]:
    """Path → text."""
    yield "/etc/os-release", OS_RELEASE
    for probe in probes:
        if probe.kind == "files" and probe.args[0] not in OWN:
            for path, text in healthy_host.files(probe.args[0], number).items():
                if text or not path.startswith(KERNELS):  # else it is a folder of files that come themselves
                    memory = "MemTotal:     1909409116 kB\n" if path == "/proc/meminfo" else ""
                    yield path.replace("{kernel}", kernel), memory + text


def placed(path: str, text: str) -> str:
    """Shell words that put a text at a path; over it, where the kernel or the image has something there."""
    made = f"/run/dressed{path}"
    return (
        f"mkdir -p $(dirname {made}) && cat >{made} <<'E'\n{text}E\n"
        f"if [ -e {path} ]; then mount --bind {made} {path}\n"
        f"elif mkdir -p $(dirname {path}) 2>/dev/null; then cp {made} {path} 2>/dev/null || true; fi\n"
    )
