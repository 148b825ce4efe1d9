"""Sandbox: the hosts of one work directory; knows the order in which everything is made and removed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import IPv4Network
from pathlib import Path

from launcher.model.problem import InputError, LauncherError, Problem
from launcher.sandbox import base, boot, cgroups, gpu, layer, lock, machine, mounts, network, state
from launcher.sandbox.host import SandboxHost
from launcher.sandbox.places import MOST_HOSTS, Place

DEFAULT_NAME = "ds"
# `down` leaves these of the work directory
KEPT = ("base", "gpfs", "lock")


def ignore(_: str) -> None:
    """A listener that does not listen."""


class Sandbox:
    """Hosts `h01`, `h02`, ... on this machine; the work directory says which sandbox it is.

    `name`: 1 to 7 small letters, another for each sandbox; empty: that of the hosts that exist, else `ds`.
    `subnet`: a private network; empty: that of the hosts that exist, else the first free of 10.77 to 10.92.
    `base`: folder of a base tree to share; empty: one below the directory. `mirror`: a Debian mirror to build
    it from; empty: apt's. `say` hears what takes long.
    """

    def __init__(
        self,
        directory: Path | str,
        *,
        name: str = "",
        subnet: str = "",
        base: Path | str = "",
        mirror: str = "",
        say: Callable[[str], None] = ignore,
    ) -> None:
        self.directory = Path(directory).absolute()
        self._base = Path(base).absolute() if base else self.directory / "base"
        self._name, self._subnet, self._mirror, self._say = name, subnet, mirror, say

    @property
    def place(self) -> Place:
        """Names and folders, as the hosts that exist were made, else as they would be."""
        known = state.load_sandbox(self.directory)
        subnet = IPv4Network(known.subnet) if known.subnet else _subnet(self._subnet)
        name = known.name or self._name or DEFAULT_NAME
        devices = Path(known.devices) if known.devices else None
        return Place(self.directory, self._base, name, subnet or network.CANDIDATES[0], devices)

    @property
    def ssh_config(self) -> Path:
        """The file for `ssh -F`; there while hosts are up."""
        return self.place.ssh_config

    @property
    def gpfs(self) -> Path:
        """What the hosts see, read-only, as `/gpfs`; write to it from this machine."""
        return self.place.gpfs

    def hosts(self) -> tuple[SandboxHost, ...]:
        """The hosts that exist, running or not."""
        place = self.place
        every = (SandboxHost(place.host(index)) for index in range(1, MOST_HOSTS + 1))
        return tuple(host for host in every if host.exists)

    def host(self, word: str) -> SandboxHost:
        """The host with that name, number or address; InputError if there is none."""
        hosts = self.hosts()
        for host in hosts:
            if word in (host.name, host.address, str(host.place.index)):
                return host
        names = " ".join(host.name for host in hosts) or "none"
        raise InputError(
            Problem(f"no host `{word}` in the sandbox, there are: {names}", where=str(self.directory))
        )

    def select(self, words: str) -> tuple[SandboxHost, ...]:
        """The hosts that `h01`, `h01,h03` or `all` means."""
        return self.hosts() if words == "all" else tuple(self.host(word) for word in words.split(","))

    def up(
        self,
        count: int,
        *,
        disks: boot.Disks | None = None,
        devices: Path | None = None,
        within_s: float = 300,
    ) -> None:
        """Have exactly this many hosts, up and without faults; nothing to do when that is so.

        Hosts that exist keep their disks' sizes. `devices`: `/dev`, for hosts with this machine's GPUs and
        programs; None: as the hosts that exist. LauncherError with a Problem for each that is not up.
        """
        if not 1 <= count <= MOST_HOSTS:
            raise InputError(Problem(f"{count} hosts asked for, a sandbox has 1 to {MOST_HOSTS}"))
        base.require_machine(built=base.is_built(self.place))
        if devices:
            gpu.require(devices)
        with self.locked():
            place = self._take(devices)
            base.build(place, mirror=self._mirror, say=self._say)
            hosts = self._make(place, count, disks or boot.Disks())
            booting = sum(host.init is None for host in hosts)
            if booting:
                self._say(f"booting hosts: {booting} of {count}")
            _on_each(hosts, lambda host: host.start(within_s=within_s), at_once=2 * (os.cpu_count() or 1))

    def down(self, *, purge: bool = False) -> None:
        """Remove all hosts and every trace of them; the base tree and `gpfs` go only with `purge`."""
        base.require_root()
        with self.locked():
            place = self.place
            _on_each(self.hosts(), SandboxHost.drop, at_once=8)
            network.remove_all(place)
            cgroups.kill(place.cgroup)
            cgroups.remove(place.cgroup)
            mounts.unmount_under(place.hosts)
            mounts.unmount_under(place.below)
            with machine.held(self._say):
                machine.set_back()
            self._clear(() if purge else KEPT)

    def build_base(self) -> None:
        """Have the base tree, without any host."""
        base.require_machine(built=base.is_built(self.place))
        with self.locked():
            base.build(self.place, mirror=self._mirror, say=self._say)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the sandbox against other commands that change it; a killed command lets go."""
        wait = partial(self._say, "waiting for another sandbox command")
        with lock.held(self.directory / "lock", wait=wait):
            yield

    def _take(self, devices: Path | None) -> Place:
        """Take what only one sandbox may have, name and subnet, and show others that the machine is used."""
        with machine.held(self._say):
            place = self._settle(devices)
            machine.prepare()
            cgroups.make(place.cgroup)
            network.make_bridge(place)
        return place

    def _settle(self, devices: Path | None) -> Place:
        """Choose name, subnet and what hosts stand on, once: it holds until `down`."""
        known = state.load_sandbox(self.directory)
        for option, given, found in (
            ("name", self._name, known.name),
            ("subnet", self._subnet, known.subnet),
        ):
            if given and found and given != found:
                raise InputError(
                    Problem(
                        f"{option} `{given}` asked for, the sandbox that is up has `{found}`",
                        where=str(self.directory),
                        do="dsv32-launch sandbox down",
                    )
                )
        if known.name and devices and known.devices != str(devices):
            raise InputError(
                Problem(
                    "hosts with GPUs asked for, the sandbox that is up has none",
                    where=str(self.directory),
                    do="dsv32-launch sandbox down",
                )
            )
        if known.name:
            return self.place
        name = self._name or DEFAULT_NAME
        if not re.fullmatch(r"[a-z]{1,7}", name):
            raise InputError(Problem(f"sandbox name `{name}` is not 1 to 7 small letters"))
        subnet = _subnet(self._subnet) or network.free_subnet(f"{name}br0")
        settled = state.SandboxState(name, str(subnet), str(devices or ""))
        state.save_sandbox(self.directory, settled)
        return self.place

    def _make(self, place: Place, count: int, disks: boot.Disks) -> tuple[SandboxHost, ...]:
        """Everything but the boot."""
        place.gpfs.mkdir(exist_ok=True)
        if not self.hosts():
            shutil.rmtree(place.layer, ignore_errors=True)
        layer.make(place)
        if place.devices:
            gpu.stack(place)
        for host in self.hosts()[count:]:
            host.drop()
        hosts = tuple(SandboxHost(place.host(index)) for index in range(1, count + 1))
        for host in hosts:
            host.make(disks)
        layer.write_client_files(place, [host.place for host in hosts])
        return hosts

    def _clear(self, kept: Sequence[str]) -> None:
        """Empty the work directory, but for what is kept."""
        tree = self.place.tree
        if "base" not in kept and self.directory in tree.parents and mounts.is_layer(tree):
            raise LauncherError(Problem("hosts of another sandbox use the base tree", where=str(tree)))
        for path in self.directory.iterdir():
            if path.name in kept:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        if not kept:
            self.directory.rmdir()


def _subnet(text: str) -> IPv4Network | None:
    if not text:
        return None
    try:
        subnet = IPv4Network(text)
    except ValueError as error:
        raise InputError(Problem(f"subnet `{text}` is no IPv4 network", why=str(error))) from None
    if not subnet.is_private or subnet.num_addresses < 2 * MOST_HOSTS:
        raise InputError(Problem(f"subnet {subnet} is not a private network of /25 or larger"))
    return subnet


def _on_each(hosts: Sequence[SandboxHost], do: Callable[[SandboxHost], None], *, at_once: int) -> None:
    """Do it on all hosts, whatever happens to some; LauncherError with the Problems of all."""
    problems: list[Problem] = []
    with ThreadPoolExecutor(at_once) as pool:
        for future in [pool.submit(do, host) for host in hosts]:
            try:
                future.result()
            except LauncherError as error:
                problems += error.problems
    if problems:
        raise LauncherError(*problems)
