"""scale: more or fewer instances of a pool, on which hosts, and what that changes in the inventory; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from launcher.load.edit import Append, Edit, Put
from launcher.load.ranges import expand
from launcher.load.wording import count
from launcher.model.inventory import ENGINE_POOLS, Inventory, Pool
from launcher.model.problem import InputError, PlanRefusedError, Problem
from launcher.model.profile import EnginePool
from launcher.model.wish import Wish


def counts_of(words: Sequence[str]) -> dict[EnginePool, int]:
    """`prefill=3` as a number for each pool that is named. InputError for anything else."""
    counts: dict[EnginePool, int] = {}
    for word in words:
        name, _, number = word.partition("=")
        pool = next((p for p in ENGINE_POOLS if p == name), None)
        if pool is None or not number.isdecimal() or int(number) < 1 or pool in counts:
            what = f"`{word}` is not a pool and how many instances it is to have"
            raise InputError(Problem(what, "POOL=N", do="write it like prefill=3, each pool once"))
        counts[pool] = int(number)
    if not counts:
        raise InputError(Problem("no pool is named", "POOL=N", do="write it like prefill=3"))
    return counts


def edits_for(
    wish: Wish, counts: Mapping[EnginePool, int], *, named: Sequence[str], below_minimum: bool
) -> tuple[Edit, ...]:
    """What the inventory is to say; () where it does already. `named`: hosts that pools take beside theirs.

    InputError where a pool is not there or hosts are missing; PlanRefusedError for fewer instances than a
    pool's minimum, which `below_minimum` lowers.
    """
    inventory = wish.inventory
    if missing := [name for name in counts if name not in inventory.pools]:
        what = f"the inventory has no pool {missing[0]}"
        raise InputError(Problem(what, inventory.path, do=f"its pools: {', '.join(inventory.pools)}"))
    left = [host for text in named for host in _expanded(text)]
    problems = list(_not_free(inventory, left))
    edits: list[Edit] = []
    for name, wanted in counts.items():
        pool = inventory.pools[name]
        lacking = wanted * _width(wish, name) - len(pool.hosts)
        taken, left = left[: max(0, lacking)], left[max(0, lacking) :]
        if len(taken) < lacking:
            problems.append(_too_few_hosts(wish, name, wanted, lacking=lacking, given=len(taken)))
        if wanted < pool.minimum and not below_minimum:
            raise PlanRefusedError(_below_minimum(pool, wanted))
        edits += _edits(pool, wanted, taken)
    if left and not problems:
        what = f"{', '.join(left)}: not needed, the pools have hosts enough"
        problems.append(Problem(what, "--hosts", do="name only hosts that are lacking"))
    if problems:
        raise InputError(*problems)
    return tuple(edits)


def _edits(pool: Pool, wanted: int, taken: Sequence[str]) -> Iterator[Edit]:
    at = ("pools", pool.name)
    if taken:
        yield Append((*at, "hosts"), tuple(taken))
    if wanted != pool.instances or taken:
        yield Put((*at, "instances"), str(wanted))
    if wanted < pool.minimum:
        yield Put((*at, "minimum"), str(wanted))


def free_hosts(inventory: Inventory) -> tuple[str, ...]:
    """Hosts of no engine pool: an engine takes all GPUs of its hosts."""
    taken = {host for name in ENGINE_POOLS if (p := inventory.pools.get(name)) for host in p.hosts}
    return tuple(host for host in inventory.hosts if host not in taken)


def _width(wish: Wish, pool: EnginePool) -> int:
    assert wish.profile.layout, "an inventory with pools has a layout"
    return wish.profile.layout.engines[pool].hosts_per_instance


def _expanded(text: str) -> tuple[str, ...]:
    try:
        return expand(text.strip())
    except ValueError as error:
        raise InputError(Problem(str(error), "--hosts", do="write a range like gpu[07-08]")) from None


def _not_free(inventory: Inventory, named: Sequence[str]) -> Iterator[Problem]:
    free = free_hosts(inventory)
    told = f"free: {', '.join(free)}" if free else "no host of the inventory is free"
    for host in named:
        if host not in inventory.hosts:
            do = f"add it under hosts in {inventory.path}; {told}"
            yield Problem(f"unknown host `{host}`", "--hosts", do=do)
        elif host not in free:
            pool = next(p for p in ENGINE_POOLS if p in inventory.pools and host in inventory.pools[p].hosts)
            what = f"`{host}` is in pool {pool} already"
            yield Problem(what, inventory.pools[pool].source, do=f"name another; {told}")


def _too_few_hosts(wish: Wish, name: EnginePool, wanted: int, *, lacking: int, given: int) -> Problem:
    pool, free = wish.inventory.pools[name], free_hosts(wish.inventory)
    what = (
        f"{name}={wanted} needs {count(wanted * _width(wish, name), 'host')}, the pool has {len(pool.hosts)}"
    )
    what += f", {given} are named: {lacking - given} missing" if given else f": {lacking} missing"
    do = f"give --hosts {','.join(free[:lacking])}"
    if len(free) < lacking:
        do = f"add {count(lacking - len(free), 'host')} under `hosts:`, and name all with --hosts"
    why = f"free: {', '.join(free)}" if free else "no host of the inventory is free"
    return Problem(what, pool.source, why=why, do=do)


def _below_minimum(pool: Pool, wanted: int) -> Problem:
    return Problem(
        what=f"{pool.name}={wanted} is below the pool's minimum, {pool.minimum}",
        where=pool.source,
        do="say --below-minimum, which lowers `minimum:` too",
    )
