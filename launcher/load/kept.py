"""What was read, packed to be kept, and read again under the inventory of another day; knows no host."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from launcher.load.form import InventoryFile
from launcher.model.inventory import Host, Inventory, SshSettings
from launcher.model.problem import InputError, Problem

KEPT_INVENTORY = "inventory.yaml"
"""The inventory's name among files that are kept, whatever it was called."""


def pack(files: Mapping[str, bytes]) -> bytes:
    """A .tar.gz of these files; the same files give the same bytes."""
    # late, here and below: most runs keep nothing
    import gzip
    import tarfile

    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o600
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), mtime=0)


def unpack(archive: bytes, folder: Path) -> None:
    """Lay the files out in a folder. InputError where that is no archive of `pack`."""
    import gzip
    import tarfile
    import zlib

    try:
        plain = gzip.decompress(archive)  # all of it: tarfile alone would not miss its end
        with tarfile.open(fileobj=io.BytesIO(plain)) as opened:
            for member in opened.getmembers():
                source = opened.extractfile(member)
                path = folder / member.name
                if source is None or not path.resolve().is_relative_to(folder.resolve()):
                    raise tarfile.TarError(member.name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(source.read())
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(
            Problem(f"not an archive of a revision: {error}", do="name another revision")
        ) from None


def kept_file(file: InventoryFile, present: Inventory) -> InventoryFile:
    """An inventory of another day, without what belongs to its day: ways to hosts, and sources of secrets."""
    return replace(file, ssh=SshSettings(), secrets={**file.secrets, **present.secrets})


def address_in(present: Inventory) -> Callable[[str], str]:
    """Looks up where a host is now."""
    return lambda name: present.hosts[name].address if name in present.hosts else ""


def reached_as(inventory: Inventory, present: Inventory) -> Inventory:
    """The same, of hosts where and as `present` reaches them. InputError for hosts that it does not have."""
    if missing := tuple(_missing(inventory, present)):
        raise InputError(*missing)
    hosts = {name: _moved(host, present.hosts[name]) for name, host in inventory.hosts.items()}
    return replace(inventory, hosts=hosts, ssh=present.ssh, path=present.path)


def _moved(host: Host, now: Host) -> Host:
    return replace(host, address=now.address)


def _missing(inventory: Inventory, present: Inventory) -> Iterator[Problem]:
    for host in inventory.hosts.values():
        if host.name not in present.hosts:
            do = f"add {host.name} to hosts of {present.path}"
            yield Problem(f"the revision has {host.name}, the inventory does not", where=host.source, do=do)
