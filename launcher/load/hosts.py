"""Hosts of an inventory: ranges written out, addresses and interfaces checked; knows no pools."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from launcher.load.collect import Collector
from launcher.load.document import Document, Location
from launcher.load.form import HostEntry, InventoryFile
from launcher.load.ranges import expand
from launcher.load.wording import count
from launcher.model.inventory import Host
from launcher.model.problem import InputError, Problem

NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
INTERFACE = re.compile(r"(?!\.{1,2}$)[^\s/:\[\]]{1,15}")
"""What Linux takes as the name of a network device, without labels and ranges."""


def read_hosts(
    file: InventoryFile, document: Document, *, host_name: Callable[[str], str], problems: Collector
) -> Mapping[str, Host] | None:
    """All hosts by name, in the file's order; None if a range cannot be read, so that names are not known."""
    expanded = {
        key: problems.attempt(partial(_expanded, key, document.place(("hosts", key)))) for key in file.hosts
    }
    hosts: dict[str, Host] = {}
    for key, names in expanded.items():
        entry = file.hosts[key]
        places = {**file.places, **entry.places}
        addresses = problems.attempt(partial(_addresses, key, entry, names or (), document, host_name))
        for name, address in zip(names or (), addresses or ("",) * len(names or ()), strict=True):
            host = Host(name, address, entry.interface or file.interface, entry.source, places)
            problems.keep(_host_problems(host, hosts, document.place(("hosts", key, "address"))))
            hosts.setdefault(name, host)
    if not file.hosts:
        problems.keep(
            [Problem("there are no hosts", where=document.place(("hosts",)), do="add one under hosts")]
        )
    problems.keep(_interface_problems(file, document, hosts))
    return None if None in expanded.values() else hosts


def _host_problems(host: Host, others: Mapping[str, Host], address_where: str) -> Iterator[Problem]:
    """A name that is none, or a name or address that another host has."""
    if not NAME.fullmatch(host.name):
        what = f"host name `{host.name}` is not letters, digits, `.`, `_` and `-`"
        yield Problem(what, where=host.source, do="rename it")
    if host.name in others:
        what = f"host `{host.name}` is here a second time, first at {others[host.name].source}"
        yield Problem(what, where=host.source, do="give it another name or remove it")
        return
    owner = next((o.name for o in others.values() if o.address == host.address != ""), None)
    if owner is not None:
        what = f"`{host.name}` has address {host.address}, which is that of `{owner}`"
        yield Problem(what, where=address_where, do="give each host its own address")


def _addresses(
    key: str, entry: HostEntry, names: tuple[str, ...], document: Document, host_name: Callable[[str], str]
) -> tuple[str, ...]:
    if not names or not entry.address:
        return tuple(_looked_up(name, entry, host_name) for name in names)
    where = document.place(("hosts", key, "address"))
    addresses = _expanded(entry.address, where)
    for address in addresses:
        if not is_address(address):
            what = f"address of `{key}` is `{address}`, expected an IPv4 address of a host"
            raise InputError(Problem(what, where=where, do="write it like 10.0.0.11"))
    if len(addresses) != len(names):
        what = (
            f"`{key}` is {count(len(names), 'host')}, `{entry.address}` is {count(len(addresses), 'address')}"
        )
        raise InputError(Problem(what, where=where, do="make the two ranges equally long"))
    return addresses


def _looked_up(name: str, entry: HostEntry, host_name: Callable[[str], str]) -> str:
    found = host_name(name)
    if is_address(found):
        return found
    what = f"host `{name}` has no address"
    why = "ssh_config has no HostName for it"
    if found:
        why = f"its HostName in ssh_config is `{found}`, and engines bind an IPv4 address"
    do = f"write `{name}: {{address: 10.0.0.11}}`"
    raise InputError(Problem(what, where=entry.source, why=why, do=do))


def _interface_problems(file: InventoryFile, document: Document, hosts: Mapping[str, Host]) -> list[Problem]:
    found = []
    written: dict[Location, str] = {("interface",): file.interface}
    written |= {("hosts", key, "interface"): entry.interface for key, entry in file.hosts.items()}
    for location, interface in written.items():
        if interface and not INTERFACE.fullmatch(interface):
            what = f"interface `{interface}` is no name of a network device, expected up to 15 characters"
            do = "see the names on a host: ip -brief address"
            found.append(Problem(what, where=document.place(location), do=do))
    lacking = [host for host in hosts.values() if not host.interface]
    if file.layout and lacking:
        some = ", ".join(host.name for host in lacking[:4]) + (", ..." if len(lacking) > 4 else "")
        what = f"no interface for {count(len(lacking), 'host')} ({some})"
        why = "NCCL and Gloo must be told which network device to use"
        do = "add `interface: eth0` to the hosts, or once at the top; names: ip -brief address"
        found.append(Problem(what, where=lacking[0].source, why=why, do=do))
    return found


def _expanded(text: str, where: str) -> tuple[str, ...]:
    try:
        return expand(text)
    except ValueError as error:
        raise InputError(Problem(str(error), where=where, do="write a range like gpu[01-06]")) from None


def is_address(text: str) -> bool:
    """An IPv4 address that a host can have."""
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return not (address.is_multicast or address.is_unspecified or address.is_reserved)
