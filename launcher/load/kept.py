"""What was read, packed to be kept, and read again under the inventory of another day; knows no host."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from launcher.load.form import InventoryFile
from launcher.load.ranges import expand
from launcher.model.inventory import Inventory, SshSettings
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


def kept_file(file: InventoryFile, present: Inventory, path: str) -> InventoryFile:
    """An inventory of another day, kept as `path`, without what belongs to its day: where hosts are, how they
    are reached, sources of secrets. Hosts that there are no more are left out; InputError, if pools had them.
    """
    hosts = {name: entry for key, entry in file.hosts.items() for name in expand(key)}
    if gone := tuple(name for name in _pooled(file) if name not in present.hosts):
        raise InputError(_gone(gone, file, present, path))
    there = {
        name: replace(entry, address=present.hosts[name].address)
        for name, entry in hosts.items()
        if name in present.hosts
    }
    return replace(file, hosts=there, ssh=SshSettings(), secrets={**file.secrets, **present.secrets})


def reached_as(inventory: Inventory, present: Inventory) -> Inventory:
    """The same, reached as `present` is."""
    return replace(inventory, ssh=present.ssh, path=present.path)


def _pooled(file: InventoryFile) -> dict[str, str]:
    """Host → the pools that it is in."""
    found: dict[str, str] = {}
    for pool, entry in file.pools.items():
        for text in (entry.hosts,) if isinstance(entry.hosts, str) else entry.hosts:
            for name in expand(text):
                found[name] = f"{found[name]}, {pool}" if name in found else pool
    return found


def _gone(gone: Sequence[str], file: InventoryFile, present: Inventory, path: str) -> Problem:
    pools = _pooled(file)
    return Problem(
        what=f"the revision needs {', '.join(gone)}, which the inventory no longer has",
        where=present.path,
        why="; ".join(f"{name} was of pool {pools[name]}" for name in gone),
        do=f"add what is still there to `hosts:` again; for what is not, write what you want of {path} "
        f"into {present.path}, then dsv32-launch up",
    )
