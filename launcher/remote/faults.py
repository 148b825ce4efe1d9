"""Place, and every fault between controller and host as one Problem; knows not how a fault was seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from errno import EACCES, EDQUOT, ENOSPC, EPERM, EROFS
from typing import Any

from launcher.model.problem import Problem

PROXY_COMMAND = "ProxyCommand"
"""What `Place.through` is where no jump host, but a program of ssh_config's connects."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a host is reached, for people."""

    host: str
    user: str
    address: str
    port: int
    through: str = ""
    """The jump host, or `PROXY_COMMAND`."""
    known_hosts: str = "~/.ssh/known_hosts"
    """The file that a host key belongs into."""
    key_name: str = ""
    """The name its key is looked up by."""

    def __str__(self) -> str:
        way = f" through {self.through}" if self.through else ""
        return f"{self.host}, {self.user}@{self.address}:{self.port}{way}"

    @property
    def ssh(self) -> str:
        """The command that tries the same by hand."""
        if self.through == PROXY_COMMAND:  # ssh_config knows it by the host's name
            return f"ssh {self.user}@{self.host}"
        return f"ssh {f'-J {self.through} ' if self.through else ''}-p {self.port} {self.user}@{self.address}"


def refused(place: Place) -> Problem:
    """TCP was answered with a reset."""
    return Problem(
        f"{place.host} refuses connections on port {place.port}",
        str(place),
        "the host is up, and no sshd listens there (or a firewall rejects)",
        "on its console: `systemctl status ssh`; if sshd has another port, set `ssh.port`",
    )


def no_route(place: Place) -> Problem:
    """The network says that it cannot get there."""
    return Problem(
        f"no route to {place.host}",
        str(place),
        "the host is off, its network is down, or the address is wrong",
        f"`ip route get {place.address}` here, then the host's console",
    )


def no_address(place: Place) -> Problem:
    """The name does not resolve."""
    return Problem(
        f"`{place.address}` is no address that this machine can resolve",
        str(place),
        do="correct `address` in the inventory, or HostName in ssh_config",
    )


def connect_late(place: Place, within_s: float) -> Problem:
    """Packets vanish."""
    return Problem(
        f"{place.host} does not answer on port {place.port} within {within_s:g} s",
        str(place),
        "packets vanish: the host is cut off, or a firewall drops them",
        f"`ping {place.address}` and the host's console; a slow network: raise `ssh.connect_within_s`",
    )


def jump_refused(place: Place) -> Problem:
    """The jump host could not, or may not, connect to it."""
    return Problem(
        f"jump host {place.through} does not reach {place.host}",
        str(place),
        "it found the host closed or away, or its sshd forbids forwarding",
        f"on {place.through}: `nc -vz {place.address} {place.port}`; its sshd needs `AllowTcpForwarding yes`",
    )


def no_proxy_command(place: Place, why: str) -> Problem:
    """The program of ssh_config's ProxyCommand cannot be run here."""
    return Problem(
        f"the ProxyCommand for {place.host} cannot be started",
        str(place),
        why,
        "correct ProxyCommand in ssh_config, or install the program that it names on this machine",
    )


def frozen(place: Place, within_s: float) -> Problem:
    """TCP connects, and no banner comes."""
    if place.through == PROXY_COMMAND:
        return Problem(
            f"the ProxyCommand for {place.host} brings no answer within {within_s:g} s",
            str(place),
            "the program runs, and no sshd speaks at its other end",
            f"`{place.ssh} -v`; a slow network: raise `ssh.connect_within_s`",
        )
    return Problem(
        f"{place.host} accepts connections and then says nothing for {within_s:g} s",
        str(place),
        "its kernel answers and sshd does not: the host hangs, or is starved of memory or disk",
        "look at its console or management controller (`ipmitool sel list`); power-cycle it if it hangs",
    )


def hung_up(place: Place) -> Problem:
    """The connection was closed before sshd's banner, again and again."""
    return Problem(
        f"{place.host} closes connections before they begin",
        str(place),
        "the ProxyCommand in ssh_config ends before sshd answers, or sshd refuses this address"
        if place.through == PROXY_COMMAND
        else "sshd's MaxStartups is reached, or it refuses this address (hosts.deny, fail2ban)",
        f"`{place.ssh}`; on the host: `journalctl -u ssh -n 20`",
    )


def no_agreement(place: Place, why: str) -> Problem:
    """The key exchange came to nothing."""
    return Problem(f"no SSH session with {place.host} came about", str(place), why, f"`{place.ssh} -v`")


def key_unknown(place: Place, kind: str, fingerprint: str) -> Problem:
    """Nobody has said that this key belongs to this host."""
    short = kind.split("-")[0] if kind.startswith("ecdsa") else kind.replace("ssh-", "")
    port = f"-p {place.port} " if place.port != 22 else ""
    named = place.key_name in (place.address, f"[{place.address}]:{place.port}")
    rename = "" if named else f" | sed 's/^[^ ]*/{place.key_name}/'"
    return Problem(
        f"host key of {place.host} is not known",
        str(place),
        f"it shows {kind} {fingerprint}, and no known_hosts file names `{place.key_name}`",
        f"compare with `ssh-keygen -lf /etc/ssh/ssh_host_{short}_key.pub` on its console; if equal: "
        f"`ssh-keyscan -t {short} {port}{place.address}{rename} >> {place.known_hosts}`",
    )


def key_changed(place: Place, kind: str, fingerprint: str, expected: Sequence[str]) -> Problem:
    """Another key than the one that is known: reinstalled, or somebody in between."""
    return Problem(
        f"host key of {place.host} has changed",
        str(place),
        f"it shows {kind} {fingerprint}, known is {', '.join(expected)}: reinstalled, or another machine",
        f"find out which; if it was reinstalled: `ssh-keygen -R '{place.key_name}' -f {place.known_hosts}`, "
        "then add its new key",
    )


def login_refused(place: Place, tried: Sequence[str]) -> Problem:
    """No key opens."""
    return Problem(
        f"{place.host} lets `{place.user}` in with none of {len(tried)} keys"
        if tried
        else f"there is no key to log in to {place.host} with",
        str(place),
        "tried: " + "; ".join(tried) if tried else "no identity, no ssh agent, no key file in ~/.ssh",
        f"`ssh-copy-id -p {place.port} {place.user}@{place.address}`, or set `ssh.identity` or `ssh.user`",
    )


def sudo_password_wanted(place: Place) -> Problem:
    """`sudo -n` does not do."""
    return Problem(
        f"sudo on {place.host} does not let `{place.user}` through without a password",
        str(place),
        "`sudo -n true` is refused",
        "set `ssh.sudo_password` to a secret's name, or on the host: "
        f"`echo '{place.user} ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/{place.user}`",
    )


def sudo_password_wrong(place: Place) -> Problem:
    """It was asked again after the password."""
    return Problem(
        f"sudo on {place.host} does not take the password of `{place.user}`",
        str(place),
        "the secret that `ssh.sudo_password` names holds another one",
        "correct where `secrets` in the inventory takes it from",
    )


def sudo_not_allowed(place: Place) -> Problem:
    """The password is right, and the user may not."""
    return Problem(
        f"`{place.user}` may not use sudo on {place.host}",
        str(place),
        "the password was taken; sudoers does not allow this user to be root",
        f"as root on the host: `usermod -aG sudo {place.user}` (or an entry in /etc/sudoers.d)",
    )


def sudo_missing(place: Place) -> Problem:
    """No such program."""
    return Problem(
        f"{place.host} has no sudo, and `{place.user}` is not root",
        str(place),
        do="set `ssh.user: root`, or on the host as root: `apt-get install sudo`",
    )


def python_missing(place: Place) -> Problem:
    """No interpreter, no agent."""
    return Problem(
        f"{place.host} has no python3",
        str(place),
        "everything on a host is done by one Python process; nothing else is needed there",
        f"`{place.ssh} apt-get install -y python3-minimal`",
    )


def python_old(place: Place, found: Sequence[int], needed: Sequence[int]) -> Problem:
    """An interpreter that cannot run us."""
    have, want = (".".join(map(str, v)) for v in (found, needed))
    return Problem(
        f"python3 {have} on {place.host}, {want} or newer is needed",
        str(place),
        do="install a newer python3 there, or a release of its distribution that has one",
    )


def agent_not_started(place: Place, status: int | None, said: str) -> Problem:
    """It did not start, and nothing known explains it."""
    return Problem(
        f"the agent did not start on {place.host}",
        str(place),
        f"its command ended with {status}" if status is not None else "the connection ended first",
        f"`{place.ssh} sudo -n python3 -IS -c 0` shows what is in the way",
        more=said,
    )


def agent_died(place: Place, status: int | None, said: str) -> Problem:
    """It was there, and is gone, while the connection is not."""
    how = f"with status {status}" if status is not None else "without a status: it was killed"
    return Problem(
        f"the agent on {place.host} ended in the middle of a request",
        str(place),
        f"it ended {how}",
        f"`{place.ssh} journalctl -k -n 50` (out of memory?), then run again: it goes on where it stopped",
        more=said,
    )


def connection_lost(place: Place, silent_s: float = 0) -> Problem:
    """The host or the network went away during a request."""
    return Problem(
        f"connection to {place.host} lost",
        str(place),
        f"not even heartbeats were answered for {silent_s:g} s"
        if silent_s
        else "it broke, or the other end closed it",
        f"`{place.ssh} uptime`, then run again: it goes on where it stopped",
    )


def lock_lost(host: str) -> Problem:
    """The connection that held its lock is gone; another run may have been there meanwhile."""
    return Problem(
        f"{host} was lost during this run",
        host,
        "its lock went with the connection, so another run may have changed it since",
        "run again: it goes on where this one stopped",
    )


def answer_late(place: Place, within_s: float) -> Problem:
    """The agent lives, and its work takes longer than it may."""
    return Problem(
        f"{place.host} did not finish within {within_s:g} s",
        str(place),
        "the agent answers, what it was asked to do does not end",
        f"`{place.ssh} ps axf` shows on what it waits; a disk or file system that hangs is the usual cause",
    )


def op_failed(host: str, target: str, error: dict[str, Any]) -> Problem:
    """The agent could not do an op (`target`: verb and object), or not even what every op needs."""
    advice = {
        ENOSPC: f"make room on {host}: `df -h`, `journalctl --vacuum-size=200M`",
        EDQUOT: f"raise the quota on {host}, or make room",
        EROFS: f"find out on {host} why it is read-only: `dmesg | grep -i remount`, `findmnt`",
        EACCES: f"root itself is refused on {host}: look at the mount's options and at `lsattr`",
        EPERM: f"root itself is refused on {host}: look at the mount's options and at `lsattr`",
    }
    *before, last = error["tail"].splitlines() or [""]  # a program says at its end why it has ended
    return Problem(
        f"{target}: {error['text']}",
        host,
        why=last,
        do=advice.get(error["errno"], ""),
        more=error["tail"] if before else "",
    )
