"""The bridge and the hosts' cables: a namespace for each host, with no way out; knows no routing."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, ip_interface
from pathlib import Path

from launcher.model.problem import LauncherError, Problem
from launcher.sandbox import programs
from launcher.sandbox.places import HostPlace, Place

DEVICES = Path("/sys/class/net")
NAMESPACES = Path("/run/netns")
CANDIDATES = tuple(IPv4Network(f"10.{i}.0.0/24") for i in range(77, 93))


def free_subnet(bridge: str) -> IPv4Network:
    """The first candidate that no other device of this machine uses."""
    for subnet in CANDIDATES:
        if not taken_by(subnet, bridge=bridge):
            return subnet
    raise LauncherError(
        Problem(
            "no free subnet in 10.77.0.0/24 to 10.92.0.0/24",
            do="name one: `sandbox --subnet 10.200.0.0/24 up N`",
        )
    )


def taken_by(subnet: IPv4Network, *, bridge: str) -> str:
    """An address of this machine, other than on that bridge, that lies in the subnet; empty if none does."""
    for line in programs.run("ip", "-o", "-4", "addr").splitlines():
        _, device, _, address = line.split()[:4]
        if device != bridge and ip_interface(address).network.overlaps(subnet):
            return f"{address} on {device}"
    return ""


def owner(place: Place) -> str:
    """Directory of the sandbox that has this sandbox's bridge; empty when there is none."""
    return programs.read(DEVICES / place.bridge / "ifalias").strip()


def make_bridge(place: Place) -> None:
    """Join hosts and machine in the subnet; LauncherError when subnet or name are in use."""
    if owner(place) not in ("", str(place.directory)):
        raise LauncherError(
            Problem(
                f"sandbox `{place.name}` of {owner(place)} is up and has the same name",
                where=str(place.directory),
                do="choose another: `sandbox --name other up N`",
            )
        )
    if not (DEVICES / place.bridge).exists():
        if taken := taken_by(place.subnet, bridge=place.bridge):
            raise LauncherError(
                Problem(
                    f"subnet {place.subnet} is in use: {taken}",
                    do="leave out `--subnet`, or name another one",
                )
            )
        programs.run("ip", "link", "add", place.bridge, "type", "bridge", "mcast_snooping", "0")
    programs.run("ip", "link", "set", place.bridge, "alias", str(place.directory))
    disable_ipv6(place.bridge)
    address = f"{place.gateway}/{place.subnet.prefixlen}"
    programs.run("ip", "addr", "replace", address, "dev", place.bridge)
    programs.run("ip", "link", "set", place.bridge, "up")


def connect(host: HostPlace) -> None:
    """Make a host's namespace and cable, unless they are there."""
    if not (NAMESPACES / host.machine).exists():
        programs.run("ip", "netns", "add", host.machine)
    if (DEVICES / host.port / "master").exists():  # the last thing that is made
        return
    remove_device(host.port)
    peer = ("peer", "name", "eth0", "netns", host.machine, "address", host.mac)
    programs.run("ip", "link", "add", host.port, "type", "veth", *peer)
    disable_ipv6(host.port)
    address = f"{host.address}/{host.sandbox.subnet.prefixlen}"
    inside = (
        "for i in all default; do echo 1 >/proc/sys/net/ipv6/conf/$i/disable_ipv6; done; "
        f"ip link set lo up && ip addr add {address} dev eth0 && ip link set eth0 up"
    )
    programs.run("ip", "netns", "exec", host.machine, "sh", "-c", inside)
    programs.run("ip", "link", "set", host.port, "master", host.sandbox.bridge, "up")


def disconnect(host: HostPlace) -> None:
    """Remove a host's cable and namespace."""
    remove_device(host.port)
    if (NAMESPACES / host.machine).exists():
        programs.run("ip", "netns", "del", host.machine)
    _forget_neighbour(host)


def cut(host: HostPlace, *, silent: bool) -> None:
    """Take a host's cable out. Silent: packets vanish; else ARP fails, and connects end in `no route`."""
    programs.run("ip", "link", "set", host.port, "down")
    if silent:
        entry = ("lladdr", host.mac, "dev", host.sandbox.bridge, "nud", "permanent")
        programs.run("ip", "neigh", "replace", host.address, *entry)
    else:
        _forget_neighbour(host)  # else the kernel trusts what it has for half a minute


def heal(host: HostPlace) -> None:
    """Put a host's cable back in."""
    programs.run("ip", "link", "set", host.port, "up")
    _forget_neighbour(host)


def is_cut(host: HostPlace) -> bool:
    """Whether a host's cable is out."""
    flags = programs.read(DEVICES / host.port / "flags")
    return bool(flags) and not int(flags, 16) & 1


def remove_all(place: Place) -> None:
    """Remove every device and namespace of this sandbox by name: what an interrupted command left."""
    if owner(place) not in ("", str(place.directory)):
        return
    for namespace in NAMESPACES.glob(f"{place.name}-h[0-9][0-9]"):
        programs.run("ip", "netns", "del", namespace.name)
    ours = re.compile(rf"{place.name}([1-9]\d*[mab]?|br0)")
    for device in DEVICES.iterdir():
        if ours.fullmatch(device.name) and "virtual" in device.resolve().parts:
            remove_device(device.name)


def remove_device(name: str) -> None:
    """Remove a network device, if it is there."""
    if (DEVICES / name).exists():
        programs.run("ip", "link", "del", name)


def disable_ipv6(device: str) -> None:
    """Keep a device from making link-local addresses of its own."""
    programs.write_setting(Path(f"/proc/sys/net/ipv6/conf/{device}/disable_ipv6"), "1")


def _forget_neighbour(host: HostPlace) -> None:
    programs.attempt("ip", "neigh", "del", host.address, "dev", host.sandbox.bridge)
