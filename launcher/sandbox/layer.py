"""What all hosts have beyond the base tree: keys, names, settings of sshd and journald; knows no one host."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from launcher.sandbox import base, programs
from launcher.sandbox.places import MOST_HOSTS, HostPlace, Place

SSHD = """HostKey /etc/ssh/ssh_host_ed25519_key
PermitRootLogin prohibit-password
PasswordAuthentication no
UseDNS no
"""
JOURNALD = """[Journal]
Storage=persistent
SystemMaxUse=16M
"""
SSH_CONFIG = """Host {names}
  User root
  Port 22
  IdentityFile {key}
  IdentitiesOnly yes
  UserKnownHostsFile {known_hosts}
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  PasswordAuthentication no
  KbdInteractiveAuthentication no
  GSSAPIAuthentication no
  ConnectTimeout 10
  LogLevel ERROR
"""


def make(place: Place) -> None:
    """Make the layer, unless it is there; it must not change while hosts run on it."""
    make_key(place.key, comment=f"sandbox-{place.name}")
    names = place.layer / "etc/hosts"
    if names.exists():
        return
    shutil.rmtree(place.layer, ignore_errors=True)
    public = programs.read(place.key.with_suffix(".pub"))
    programs.write(place.layer / "etc/ssh/sshd_config.d/10-sandbox.conf", SSHD)
    programs.write(place.layer / "etc/systemd/journald.conf.d/10-sandbox.conf", JOURNALD)
    _authorize(place.layer / "root", public, user_id=0)
    for user, user_id in base.USER_IDS.items():
        _authorize(place.layer / "home" / user, public, user_id=user_id)
    lines = ["127.0.0.1 localhost", f"{place.gateway} controller"]
    lines += [f"{h.address} {h.name}" for h in map(place.host, range(1, MOST_HOSTS + 1))]
    programs.write(names, "\n".join(lines) + "\n")  # last: it says that the layer is whole


def make_key(path: Path, *, comment: str) -> None:
    """Make a key pair, unless it is there."""
    if not path.with_suffix(".pub").exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        programs.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path))


def write_client_files(place: Place, hosts: Iterable[HostPlace]) -> None:
    """What clients on this machine need: ssh_config and known_hosts."""
    known, config, names = "", "", []
    for host in hosts:
        public = " ".join(programs.read(host.saved_key.with_suffix(".pub")).split()[:2])
        known += f"{host.name},{host.address} {public}\n"
        config += f"Host {host.name}\n  HostName {host.address}\n  HostKeyAlias {host.name}\n"
        names += [host.name, host.address]
    config += SSH_CONFIG.format(names=" ".join(names), key=place.key, known_hosts=place.known_hosts)
    programs.write(place.known_hosts, known)
    programs.write(place.ssh_config, config)


def _authorize(home: Path, public: str, *, user_id: int) -> None:
    keys = home / ".ssh/authorized_keys"
    programs.write(keys, public, mode=0o600)
    for path in (home, home / ".ssh", keys):
        os.chown(path, user_id, user_id)
    home.chmod(0o700)
    keys.parent.chmod(0o700)
