"""Names, addresses and folders of a sandbox and its hosts; knows how they are derived, touches nothing."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

MOST_HOSTS = 64
# h01 is .11: the addresses below are for the machine and for things that tests put beside the hosts
FIRST_ADDRESS = 10


@dataclass(frozen=True, slots=True)
class Place:
    """One sandbox."""

    directory: Path
    base: Path
    """Folder of the base tree; other sandboxes may share it."""
    name: str
    """Small letters; part of every network device, namespace and cgroup of this sandbox."""
    subnet: IPv4Network
    devices: Path | None = None
    """`/dev`, for hosts that have its GPUs' device files and this machine's programs; None: neither."""

    @property
    def gpfs(self) -> Path:
        """What the hosts see as `/gpfs`."""
        return self.directory / "gpfs"

    @property
    def tree(self) -> Path:
        """The Debian tree under all hosts."""
        return self.base / "tree"

    @property
    def layer(self) -> Path:
        """What all hosts of this sandbox have beyond the base tree."""
        return self.directory / "layer"

    @property
    def below(self) -> Path:
        """Layer and base tree as one, where this machine's own root lies between them and the hosts."""
        return self.directory / "below"

    @property
    def hosts(self) -> Path:
        """Folder of the hosts' folders."""
        return self.directory / "hosts"

    @property
    def key(self) -> Path:
        """Private key that logs in everywhere."""
        return self.directory / "id_ed25519"

    @property
    def ssh_config(self) -> Path:
        """The file for `ssh -F`."""
        return self.directory / "ssh_config"

    @property
    def known_hosts(self) -> Path:
        """The hosts' real keys."""
        return self.directory / "known_hosts"

    @property
    def bridge(self) -> str:
        """Network device that joins the hosts."""
        return f"{self.name}br0"

    @property
    def gateway(self) -> str:
        """Address of the machine itself on the bridge."""
        return str(self.subnet.network_address + 1)

    @property
    def cgroup(self) -> str:
        """Cgroup above the hosts' cgroups."""
        return f"dsv32-{self.name}"

    def host(self, index: int) -> HostPlace:
        """The place of the host with this number, from 1."""
        return HostPlace(self, index)


@dataclass(frozen=True, slots=True)
class HostPlace:
    """One host of a sandbox."""

    sandbox: Place
    index: int

    @property
    def name(self) -> str:
        """`h01`."""
        return f"h{self.index:02d}"

    @property
    def address(self) -> str:
        """Its only address."""
        return str(self.sandbox.subnet.network_address + FIRST_ADDRESS + self.index)

    @property
    def mac(self) -> str:
        """Hardware address: the same at each start, another one in each sandbox."""
        tag = hashlib.sha256(self.sandbox.name.encode()).digest()
        return f"02:77:{tag[0]:02x}:{tag[1]:02x}:00:{self.index:02x}"

    @property
    def machine(self) -> str:
        """Name of its network namespace, and of the container for systemd-nspawn."""
        return f"{self.sandbox.name}-{self.name}"

    @property
    def port(self) -> str:
        """The machine's end of its network cable."""
        return f"{self.sandbox.name}{self.index}"

    @property
    def cgroup(self) -> str:
        """Cgroup of all its processes."""
        return f"{self.sandbox.cgroup}/{self.name}"

    @property
    def folder(self) -> Path:
        """Everything of this host on the machine; it exists as long as the host does."""
        return self.sandbox.hosts / self.name

    @property
    def root(self) -> Path:
        """Its root file system."""
        return self.folder / "root"

    @property
    def writable(self) -> Path:
        """What it has written to its root."""
        return self.folder / "writable"

    @property
    def nvme(self) -> Path:
        """What it sees as `/nvme`."""
        return self.folder / "nvme"

    @property
    def console(self) -> Path:
        """Log of its console."""
        return self.folder / "console.log"

    @property
    def saved_key(self) -> Path:
        """Its SSH host key, which outlives the writable part."""
        return self.sandbox.directory / "hostkeys" / self.name
