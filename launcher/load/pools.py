"""Pools of an inventory: who is in which, and how many instances that makes; knows no addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from launcher.load.collect import Collector
from launcher.load.document import Document, Location
from launcher.load.form import InventoryFile, PoolEntry
from launcher.load.ranges import expand
from launcher.load.schema import near
from launcher.load.wording import count
from launcher.model.inventory import ENGINE_POOLS, Host, Pool, PoolName
from launcher.model.problem import Problem
from launcher.model.profile import Layout

POOLS: tuple[PoolName, ...] = (*ENGINE_POOLS, "router")


def read_pools(
    file: InventoryFile,
    document: Document,
    *,
    hosts: Mapping[str, Host] | None,
    layout: Layout | None,
    problems: Collector,
) -> Mapping[PoolName, Pool]:
    """The pools by name; instances and minimum filled in where the file leaves them open."""
    problems.keep(_presence_problems(file, document, layout))
    pools: dict[PoolName, Pool] = {}
    owners: dict[str, PoolName] = {}
    for name, entry in file.pools.items():
        members: list[str] = []
        for member, where in _members(name, entry, document, problems):
            if hosts is not None and member not in hosts:
                problems.keep(
                    [Problem(f"unknown host `{member}` in pool {name}", where, do=near(member, hosts))]
                )
            elif member in members:
                what = f"host `{member}` is in pool {name} twice"
                problems.keep([Problem(what, where=where, do="remove it once")])
            elif name in ENGINE_POOLS and (owner := owners.setdefault(member, name)) != name:
                what = f"host `{member}` is in the pools {owner} and {name}"
                why = "an engine takes all GPUs of its hosts"
                problems.keep([Problem(what, where=where, why=why, do="remove it from one of them")])
            members.append(member)
        pools[name] = _pool(name, entry, tuple(members), width=_width(name, layout))
        if layout is not None or name == "router":
            problems.keep(_size_problems(pools[name], entry, document, layout))
    return pools


def _members(
    name: PoolName, entry: PoolEntry, document: Document, problems: Collector
) -> Iterator[tuple[str, str]]:
    """Each host name with its place."""
    location: Location = ("pools", name, "hosts")
    texts = [entry.hosts] if isinstance(entry.hosts, str) else entry.hosts
    if not texts:
        what = f"pool {name} has no hosts"
        problems.keep([Problem(what, where=document.place(location), do="add one, or remove the pool")])
    for index, text in enumerate(texts):
        where = document.place((*location, index))
        try:
            yield from ((member, where) for member in expand(text))
        except ValueError as error:
            problems.keep([Problem(str(error), where=where, do="write a range like gpu[01-06]")])


def _pool(name: PoolName, entry: PoolEntry, members: tuple[str, ...], *, width: int) -> Pool:
    instances = entry.instances or max(1, len(members) // width)
    return Pool(
        name=name,
        hosts=members,
        instances=instances,
        minimum=1 if entry.minimum is None else entry.minimum,
        source=entry.source,
    )


def _width(name: PoolName, layout: Layout | None) -> int:
    if layout is None or name == "router":
        return 1
    part = layout.engines.get(name)
    return part.hosts_per_instance if part else 1


def _size_problems(
    pool: Pool, entry: PoolEntry, document: Document, layout: Layout | None
) -> Iterator[Problem]:
    """Instances that the hosts do not make."""
    width = _width(pool.name, layout)
    place = ("pools", pool.name)
    if pool.minimum > pool.instances:
        what = (
            f"pool {pool.name}: minimum {pool.minimum} is more than its {count(pool.instances, 'instance')}"
        )
        do = f"write at most `minimum: {pool.instances}`"
        yield Problem(what, where=document.place((*place, "minimum")), do=do)
    # hosts that no instance takes are spare: prepared, for `scale`; of a pool of routers each host has one
    spare = pool.name != "router" and entry.instances is not None
    needed = pool.instances * width
    if not pool.hosts or needed == len(pool.hosts) or (spare and needed < len(pool.hosts)):
        return
    fit = len(pool.hosts) // width
    wanted = f"{count(pool.instances, 'instance')} of {count(width, 'host')}"
    have = count(len(pool.hosts), "host")
    what = f"pool {pool.name} has {have}, expected {needed} for {wanted}"
    why = f"hosts_per_instance is {width}" if pool.name != "router" else "each host of it runs one router"
    do = f"write `instances: {fit}`" if fit and fit * width == len(pool.hosts) else "add or remove hosts"
    yield Problem(what, where=document.place((*place, "instances")), why=why, do=do)


def _presence_problems(file: InventoryFile, document: Document, layout: Layout | None) -> Iterator[Problem]:
    """The inventory has the pools that its layout has; a layout that could not be read asks for none."""
    if file.pools and not file.layout:
        what, do = "there are pools, but no `layout`", "add `layout:`, or remove the pools to provision only"
        yield Problem(what, where=document.place(("pools",)), do=do)
    if layout is None:
        return
    wanted: tuple[PoolName, ...] = (*layout.engines, *(("router",) if layout.router else ()))
    for name in POOLS:
        if name in wanted and name not in file.pools:
            where = document.place(("pools",) if file.pools else ("layout",))
            what = f"layout `{file.layout}` needs a pool {name}, the inventory has none"
            yield Problem(what, where=where, do=f"add `{name}: {{hosts: [...]}}` to pools")
        elif name in file.pools and name not in wanted:
            what = f"layout `{file.layout}` has no pool {name}, the inventory has one"
            where = document.place(("pools", name))
            yield Problem(what, where=where, do="remove it, or choose a layout that has one")
