"""Hosts that see this machine's GPUs, driver and programs; knows what of a host must stay Debian's.

Such a host's root is this machine's own with the base tree below it: what the machine has (its Python, torch,
CUDA) comes first, what it lacks (systemd, sshd) shows through. How a host boots, who may log in and which
packages it has are the base tree's alone, so that nothing that this machine starts is started there.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from launcher.model.problem import LauncherError, Problem
from launcher.sandbox import mounts
from launcher.sandbox.places import Place

ROOT = Path("/")
# of the base tree, whatever this machine has there
OURS = (
    "etc/apt",
    "etc/cron.d",
    "etc/default",
    "etc/fstab",
    "etc/group",
    "etc/gshadow",
    "etc/hosts",
    "etc/init.d",
    "etc/logrotate.d",
    "etc/nsswitch.conf",
    "etc/pam.d",
    "etc/passwd",
    *(f"etc/rc{level}.d" for level in "0123456S"),
    "etc/security",
    "etc/shadow",
    "etc/ssh",
    "etc/sudoers.d",
    "etc/sysctl.d",
    "etc/systemd",
    "etc/tmpfiles.d",
    "home",
    "root",
    "var/lib/apt",
    "var/lib/dpkg",
    "var/lib/systemd",
    "var/log",
)
# overlayfs: nothing of the layers below is seen in such a folder
OPAQUE = "trusted.overlay.opaque"
FILES = ("nvidia*", "nvidia-caps/*")
# programs and libraries lie there; whatever is mounted below is no part of the root file system
PROGRAMS = (Path("/usr"), Path("/opt"))
# where machines of some clouds have the driver (`bin`, `lib64`), which only their environment tells
DRIVER = Path("/usr/local/nvidia")
LINKED = (("bin", "usr/bin"), ("lib64", "usr/lib/x86_64-linux-gnu"))


def require(devices: Path) -> None:
    """LauncherError when there is no GPU's device file in that folder."""
    if not any(re.fullmatch(r"nvidia\d+", file.name) for file in _files(devices)):
        raise LauncherError(
            Problem(
                "no GPU on this machine",
                where=str(devices),
                why="there is no device file nvidia0",
                do="load the driver, or leave out --gpu",
            )
        )


def stack(place: Place) -> None:
    """Have layer and base tree as one file system: overlayfs refuses a folder of the root below that root."""
    place.below.mkdir(exist_ok=True)
    mounts.stack(place.below, lower=(place.layer, place.tree), label=place.name)


def fill(upper: Path, place: Place) -> None:
    """Put into a host's new writable part what must not be this machine's, and where the driver is."""
    for name in OURS:
        source, target = place.below / name, upper / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
            _keep_owners(source, target)
            os.setxattr(target, OPAQUE, b"y")
        elif source.exists():
            shutil.copy2(source, target)
    for folder, beside in LINKED:
        _link_missing(DRIVER / folder, ROOT / beside, upper / beside)


def words(devices: Path) -> Iterator[str]:
    """For systemd-nspawn: the device files, what is mounted among programs and libraries, and every right."""
    yield "--capability=all"
    for file in _files(devices):
        yield f"--bind={file}:/dev/{file.relative_to(devices)}"
    for folder in PROGRAMS:
        for point in mounts.under(folder):
            yield f"--bind-ro={point}"


def _files(devices: Path) -> tuple[Path, ...]:
    found = (file for pattern in FILES for file in devices.glob(pattern))
    return tuple(sorted(file for file in found if file.is_char_device()))


def _keep_owners(source: Path, target: Path) -> None:
    for path in (source, *source.rglob("*")):
        status = path.lstat()
        os.chown(target / path.relative_to(source), status.st_uid, status.st_gid, follow_symlinks=False)


def _link_missing(folder: Path, beside: Path, upper: Path) -> None:
    """A link for each file of a folder that the machine's usual place lacks."""
    if not folder.is_dir():
        return
    upper.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.is_file() and not (beside / path.name).exists():
            (upper / path.name).symlink_to(path)
