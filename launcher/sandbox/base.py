"""The Debian tree under all hosts, and the packages this machine needs; knows no host."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from launcher.model.problem import LauncherError, Problem
from launcher.sandbox import lock, mounts, programs
from launcher.sandbox.places import Place

# a program or file that the sandbox needs on this machine -> its Debian package
TO_BUILD = {
    "debootstrap": "debootstrap",
    "/usr/share/keyrings/debian-archive-keyring.gpg": "debian-archive-keyring",
}
TO_RUN = {
    "systemd-nspawn": "systemd-container",
    "ip": "iproute2",
    "tc": "iproute2",
    "nsenter": "util-linux",
    "setsid": "util-linux",
    "mount": "mount",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
}
SUITE = "bookworm"
# what hosts of a site have before we come: roles bring everything else
PACKAGES = (
    "systemd",
    "systemd-sysv",
    "dbus",
    "openssh-server",
    "python3",
    "python3-apt",
    "sudo",
    "curl",
    "rsync",
    "procps",
    "iproute2",
    "iputils-ping",
    "ca-certificates",
    "cron",
    "logrotate",
    "less",
)
# units that wait for hardware a host does not have, or want a network it must not have
MASKED = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "dpkg-db-backup.timer",
    "console-getty.service",
    "getty.target",
    "systemd-pstore.service",
    "systemd-network-generator.service",
    "systemd-udevd.service",
)
SUDO_USER = "ops"
"""Logs in with the key; sudo asks for no password."""
PASSWORD_USER = "opspw"
"""Logs in with the key; sudo asks for `SUDO_PASSWORD`."""
SUDO_PASSWORD = "sandbox"
USER_IDS = {SUDO_USER: 1000, PASSWORD_USER: 1001}
FINISH = f"""set -e
useradd -m -u {USER_IDS[SUDO_USER]} -s /bin/bash {SUDO_USER}
useradd -m -u {USER_IDS[PASSWORD_USER]} -s /bin/bash {PASSWORD_USER}
echo '{PASSWORD_USER}:{SUDO_PASSWORD}' | chpasswd
usermod -aG sudo {PASSWORD_USER}
usermod -p '*' {SUDO_USER}
usermod -p '*' root
echo '{SUDO_USER} ALL=(ALL) NOPASSWD:ALL' >/etc/sudoers.d/{SUDO_USER}
chmod 440 /etc/sudoers.d/{SUDO_USER}
rm -f /etc/ssh/ssh_host_*
systemctl mask {" ".join(MASKED)} >/dev/null 2>&1
systemctl set-default multi-user.target >/dev/null 2>&1
rm -rf /var/cache/apt/archives/*.deb /var/log/bootstrap.log
: >/etc/resolv.conf
rm -f /etc/machine-id /var/lib/dbus/machine-id /etc/hostname
"""


def lacking(*, built: bool = False) -> tuple[str, ...]:
    """Debian packages that this machine needs and does not have; `built`: the base tree is there."""
    needed = TO_RUN if built else {**TO_BUILD, **TO_RUN}
    absent = {package for name, package in needed.items() if not (shutil.which(name) or Path(name).exists())}
    return tuple(sorted(absent))


def require_machine(*, built: bool = False) -> None:
    """LauncherError when this machine cannot hold a sandbox: not root, or packages missing."""
    require_root()
    if packages := lacking(built=built):
        raise LauncherError(
            Problem(
                f"this machine lacks Debian packages: {' '.join(packages)}", do="dsv32-launch sandbox deps"
            )
        )


def require_root() -> None:
    """LauncherError for everyone but root."""
    if os.geteuid():
        raise LauncherError(
            Problem("a sandbox needs root: it makes mounts and network devices", do="use sudo")
        )


def install_lacking(say: Callable[[str], None]) -> tuple[str, ...]:
    """Install the missing packages with apt; their names."""
    packages = lacking()
    if packages:
        say(f"installing {' '.join(packages)}")
        for words in (["update", "-q"], ["install", "-qy", "--no-install-recommends", *packages]):
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            done = programs.attempt("apt-get", *words, environment=environment)
            if done.returncode:
                what = f"`apt-get {words[0]}` ended with {done.returncode}"
                raise LauncherError(
                    Problem(what, why=done.stderr.strip()[-1500:], do="run it as root, by hand")
                )
    return packages


def build(place: Place, *, mirror: str, say: Callable[[str], None]) -> None:
    """Have the base tree of this recipe; minutes when it is not there, nothing when it is.

    `mirror`: address of a Debian mirror; empty: the one that apt of this machine uses.
    """
    # two sandboxes may share a base tree: one builds, the other waits for it
    wait = partial(say, "waiting for the base tree, which another command builds")
    with lock.held(place.base / "lock", wait=wait):
        if is_built(place):
            return
        if mounts.is_layer(place.tree):
            raise LauncherError(
                Problem(
                    "the base tree is of another recipe, and hosts still use it",
                    where=str(place.tree),
                    do="dsv32-launch sandbox down",
                )
            )
        say(f"building the base tree ({SUITE}, {len(PACKAGES)} packages and what they need): minutes, once")
        new = place.base / "new"
        mounts.unmount_under(new)
        shutil.rmtree(new, ignore_errors=True)
        _bootstrap(new, mirror=mirror or _machine_mirror(), log=place.base / "build.log")
        programs.run("chroot", str(new), "/bin/sh", "-c", FINISH)
        (place.base / "recipe").unlink(missing_ok=True)
        shutil.rmtree(place.tree, ignore_errors=True)
        new.rename(place.tree)
        programs.write(place.base / "recipe", _recipe())


def is_built(place: Place) -> bool:
    """Whether the base tree is there, whole and of this recipe."""
    return programs.read(place.base / "recipe") == _recipe() and place.tree.exists()


def _recipe() -> str:
    return hashlib.sha256(json.dumps([SUITE, PACKAGES, FINISH]).encode()).hexdigest() + "\n"


def _bootstrap(tree: Path, *, mirror: str, log: Path) -> None:
    quick = ["eatmydata"] if shutil.which("eatmydata") else []
    words = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(tree), mirror]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = programs.attempt(*quick, *words, environment=environment)
    log.write_text(done.stdout + done.stderr)
    # debootstrap leaves /proc mounted when it is interrupted or fails
    mounts.unmount_under(tree)
    if done.returncode:
        said = (done.stdout + done.stderr)[-1500:]
        raise LauncherError(Problem(f"debootstrap ended with {done.returncode}", where=str(log), why=said))


def _machine_mirror() -> str:
    fields = "$(REPO_URI) $(RELEASE) $(CREATED_BY) $(COMPONENT) $(ORIGIN)"
    rows = [
        row.split()
        for row in programs.attempt("apt-get", "indextargets", "--format", fields).stdout.splitlines()
    ]
    mirrors = [
        (row[1] != SUITE, row[0])
        for row in rows
        if row[2:] == ["Packages", "main", "Debian"] and "security" not in row[0]
    ]
    if not mirrors:
        raise LauncherError(
            Problem(
                "apt of this machine knows no Debian mirror",
                do="`apt-get update`, or set DSV32_SANDBOX_MIRROR to the address of one",
            )
        )
    return min(mirrors)[1]
