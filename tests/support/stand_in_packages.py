"""Packages with the names and versions of configs/platforms, whose programs replay what an H200 host says.

apt, dpkg, systemd, modprobe.d, the initramfs's place and GRUB's are the real ones. What one kernel cannot do
in a sandbox host is done by MACHINE at each boot, and only then: a driver of the installed version, the
initramfs's options of it, modules of modules-load.d, the command line of GRUB's menu, settings of sysctl.d.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import healthy_host

KERNEL = os.uname().release
OWN = "/usr/lib/stand-in"
DRIVER, NEWER = "580.159.04-1ubuntu1", "580.173.02-1ubuntu1"


@dataclass(frozen=True)
class Package:
    """One .deb: files by path, those below a bin folder or OWN executable."""

    name: str
    version: str
    files: Mapping[str, str] = field(default_factory=dict)
    script: str = ""
    """What its postinst does."""


BOOT = f"""#!/bin/sh
layer() {{  # /sys and /proc take no files
    mkdir -p "/run/stand-in$1/upper" "/run/stand-in$1/work"
    options="lowerdir=$1,upperdir=/run/stand-in$1/upper,workdir=/run/stand-in$1/work"
    mount -t overlay stand-in -o "$options" "$1" 2>/dev/null || mount -t tmpfs stand-in "$1"
}}
over() {{  # a file of the kernel's that this host has for itself
    mkdir -p /run/stand-in/files && printf '%s\\n' "$2" >"/run/stand-in/files/${{1##*/}}"
    mount --bind "/run/stand-in/files/${{1##*/}}" "$1"
}}
option() {{
    word='\\("[^"]*"\\|[^ ]*\\)'
    sed -n "s/^options nvidia .*NVreg_$1=$word.*/\\1/p" /boot/initrd.img-* | tail -1
}}
mkdir -p /run/stand-in; mount -t tmpfs stand-in /run/stand-in
layer /sys/module; layer /proc/driver
if [ -e {OWN}/nvidia ]; then
    mkdir -p /proc/driver/nvidia && cd /proc/driver/nvidia
    loaded="NVIDIA UNIX Open Kernel Module for x86_64  $(cat {OWN}/nvidia)  Release Build"
    echo "NVRM version: $loaded" >version
    memory=$(option EnableStreamMemOPs); words=$(option RegistryDwords)
    printf 'EnableStreamMemOPs: %s\\nRegistryDwords: %s\\n' "${{memory:-0}}" "${{words:-\\"\\"}}" >params
fi
for module in $(cat /etc/modules-load.d/*.conf 2>/dev/null); do
    [ -e {OWN}/modules/$module ] && mkdir -p /sys/module/$module && echo live >/sys/module/$module/initstate
done
[ -e {OWN}/ofed ] && mkdir -p /sys/module/mlx5_core && cp {OWN}/ofed /sys/module/mlx5_core/version
over /proc/cmdline "root=UUID=1 ro$(cat /boot/grub/grub.cfg 2>/dev/null)"
maps=$(sed -n 's/^vm.max_map_count *= *//p' /etc/sysctl.d/*.conf 2>/dev/null | tail -1)
over /proc/sys/vm/max_map_count "${{maps:-65530}}"
"""
UNIT = "[Unit]\nDescription=stand-in\n{unit}[Service]\n{service}[Install]\nWantedBy={by}\n"
BOOT_UNIT = UNIT.format(
    unit="DefaultDependencies=no\nBefore=sysinit.target\n"
    "After=local-fs.target systemd-tmpfiles-setup.service\n",
    service=f"Type=oneshot\nRemainAfterExit=yes\nExecStart={OWN}/boot\n",
    by="sysinit.target",
)
GRUB = """#!/bin/sh
for file in /etc/default/grub.d/*.cfg; do [ -e "$file" ] && . "$file"; done
mkdir -p /boot/grub && printf %s "$GRUB_CMDLINE_LINUX" >/boot/grub/grub.cfg
"""
INITRAMFS = f"#!/bin/sh\ncat /etc/modprobe.d/*.conf >/boot/initrd.img-{KERNEL} 2>/dev/null; :\n"
STAYS = UNIT.format(unit="", service="ExecStart=/bin/sleep infinity\n", by="multi-user.target")
FABRIC = f"""#!/bin/sh
own=$(cat {OWN}/fabricmanager)
loaded=$(sed -n 's/.*x86_64  \\([0-9.]*\\) .*/\\1/p' /proc/driver/nvidia/version)
[ "$1" = --version ] && echo "Fabric Manager version is : $own" && exit
if [ "$own" != "$loaded" ]; then
    echo "fabric manager NVIDIA GPU driver interface version $own don't match with driver version $loaded" >&2
    exit 1
fi
exec sleep infinity
"""
SMI = f"""#!/bin/sh
loaded=$(sed -n 's/.*x86_64  \\([0-9.]*\\) .*/\\1/p' /proc/driver/nvidia/version 2>/dev/null)
if [ "$loaded" != "$(cat {OWN}/userspace)" ]; then
    echo "Failed to initialize NVML: Driver/library version mismatch"
    exit 18
fi
case "$1" in --*) name=${{1%%=*}} ;; *) name="$*" ;; esac
cat "{OWN}/smi/$name"
"""
MACHINE = Package(
    "stand-in-machine",
    "1",
    {
        f"{OWN}/boot": BOOT,
        "/usr/lib/systemd/system/stand-in-machine.service": BOOT_UNIT,
        "/usr/sbin/update-initramfs": INITRAMFS,
        "/usr/sbin/update-grub": GRUB,
        "/usr/lib/systemd/system/gpfs.service": STAYS,
        "/usr/lpp/mmfs/bin/mmmount": "#!/bin/sh\nexit 1\n",
    },
    "update-initramfs -u; update-grub; systemctl enable stand-in-machine gpfs",
)
"""What is on a host before we come, and what a kernel of its own would do."""


def packages() -> Iterator[Package]:
    """All that the stand-in platform names, and what drifts bring."""
    for name in (f"linux-image-{KERNEL}", f"linux-headers-{KERNEL}"):
        yield Package(name, "1")
    unit = "/usr/lib/systemd/system/{}.service".format
    yield Package("chrony", "4.5-1ubuntu4", {unit("chrony"): STAYS})
    yield Package("doca-ofed", "3.2.1", {f"{OWN}/ofed": "25.10-1.2.8\n"})
    yield from driver(DRIVER)
    yield next(p for p in driver(NEWER) if p.name == "nvidia-fabricmanager")
    yield Package("gdrdrv-dkms", "2.5.1-1", {f"{OWN}/modules/gdrdrv": ""})
    for version in ("2.5.1-1", "2.5.2-1"):
        yield Package("libgdrapi", version)
    bridge = {"lspci": "echo '0000:00:01.0 PCI bridge'", "setpci": "echo 0000"}
    yield Package("pciutils", "1:3.10.0", {f"/usr/bin/{n}": f"#!/bin/sh\n{x}\n" for n, x in bridge.items()})
    compiler = {"/usr/local/cuda-13.0/bin/nvcc": "#!/bin/sh\necho release 13.0\n"}
    yield Package("cuda-nvcc-13-0", "13.0.88-1", compiler)
    for name in ("cuda-cudart-dev-13-0", "cuda-nvrtc-dev-13-0", "libcublas-dev-13-0"):
        yield Package(name, "13.0.96-1")
    for name in ("libibverbs1", "ibverbs-providers", "librdmacm1"):
        yield Package(name, "2510mlnx56-1.2510128")
    yield Package("libnvshmem3-cuda-13", "3.5.19-1")
    yield Package("libnccl2", "2.28.9-1+cuda13.0")


def driver(version: str) -> Iterator[Package]:
    """One release of the driver, as NVIDIA's repository cuts it up."""
    number = f"{version.partition('-')[0]}\n"
    unit = "/usr/lib/systemd/system/{}.service".format
    said = {f"{OWN}/smi/{name}": text for name, text in _smi(number.strip())}
    modules = {f"{OWN}/nvidia": number, f"{OWN}/modules/nvidia_peermem": ""}
    yield Package("nvidia-dkms-580-open", version, modules, "update-initramfs -u")
    yield Package("libnvidia-compute-580", version, {f"{OWN}/userspace": number})
    yield Package("nvidia-utils-580", version, {"/usr/bin/nvidia-smi": SMI, **said})
    yield Package("nvidia-compute-utils-580", version, {unit("nvidia-persistenced"): STAYS})
    manager = UNIT.format(unit="", service="ExecStart=/usr/bin/nv-fabricmanager\n", by="multi-user.target")
    files = {f"{OWN}/fabricmanager": number, "/usr/bin/nv-fabricmanager": FABRIC}
    restarts = "systemctl daemon-reload; systemctl try-restart nvidia-fabricmanager || :"
    files[unit("nvidia-fabricmanager")] = manager
    yield Package("nvidia-fabricmanager", version, files, restarts)


def _smi(version: str) -> Iterator[tuple[str, str]]:
    for words in ("-L", "nvlink -s", "nvlink -e", "topo -m", "conf-compute -f"):
        yield words, healthy_host.nvidia_smi(words.split())
    for words in ("--query-gpu", "--query-remapped-rows", "--query-compute-apps"):
        yield words, healthy_host.nvidia_smi([words], driver=version)


def publish(folder: Path, work: Path) -> Path:
    """Build all of them into a folder that apt reads; where MACHINE is."""
    folder.mkdir(parents=True, exist_ok=True)
    index, machine = "", folder
    for package in (MACHINE, *packages()):
        path = build(package, folder, work)
        machine = path if package is MACHINE else machine
        content = path.read_bytes()
        index += f"{control(package)}Filename: ./{path.name}\nSize: {len(content)}\n"
        index += f"SHA256: {hashlib.sha256(content).hexdigest()}\n\n"
    (folder / "Packages").write_text(index)
    return machine


def build(package: Package, folder: Path, work: Path) -> Path:
    """One .deb, by dpkg-deb."""
    tree = work / f"{package.name}-{package.version.replace(':', '')}"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(control(package))
    if package.script:
        (tree / "DEBIAN/postinst").write_text(f"#!/bin/sh\nset -e\n{package.script}\n")
        (tree / "DEBIAN/postinst").chmod(0o755)
    for path, text in package.files.items():
        file = tree / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755 if text.startswith("#!") else 0o644)
    made = folder / f"{package.name}_{package.version.replace(':', '%3a')}_all.deb"
    words = ["dpkg-deb", "-Znone", "--root-owner-group", "-b", str(tree), str(made)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return made


def control(package: Package) -> str:
    """Its control file."""
    head = f"Package: {package.name}\nVersion: {package.version}\nArchitecture: all\n"
    return f"{head}Maintainer: nobody\nDescription: a stand-in\n"
