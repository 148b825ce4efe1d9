"""What users meet at the front, as an inventory has it: its secrets, and an address that moves."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping

from launcher.load.document import Document
from launcher.load.form import InventoryFile
from launcher.load.schema import near
from launcher.model.inventory import Host, Pool, PoolName
from launcher.model.problem import Problem


def secret_problems(file: InventoryFile, document: Document) -> Iterator[Problem]:
    """Names of secrets that there are not."""
    for key, name in (("api_key", file.front.api_key), ("certificate", file.front.certificate)):
        if name and name not in file.secrets:
            what = f"front.{key} names the secret `{name}`, which `secrets` does not have"
            yield Problem(what, where=document.place(("front", key)), do=near(name, file.secrets))


def address_problems(
    file: InventoryFile, document: Document, hosts: Mapping[str, Host], pools: Mapping[PoolName, Pool]
) -> Iterator[Problem]:
    """An address that is none, that is a host's own, or that has nowhere to move."""
    address, where = file.front.address, document.place(("front", "address"))
    if not address:
        return
    try:
        parsed = ipaddress.IPv4Interface(address if "/" in address else "")
    except ValueError:
        what = f"front.address is `{address}`, expected an IPv4 address with its prefix"
        yield Problem(what, where=where, do="write, for instance, `address: 10.0.0.50/24`")
        return
    owner = next((h for h in hosts.values() if h.address == str(parsed.ip)), None)
    if owner:
        what = f"front.address {parsed.ip} is the address of host {owner.name}, too"
        yield Problem(what, where=where, why=f"{owner.source} has it", do="take an address that nobody has")
    routing = pools["router"].hosts if "router" in pools else ()
    if len(routing) < 2:
        what = f"front.address is to move between hosts that route, and the pool router has {len(routing)}"
        yield Problem(what, where=where, do="add a host to the pool router, or remove the line")
