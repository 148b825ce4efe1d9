"""Groups: which instances of a service move first, so that enough of each pool serve all the time; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from launcher.model.profile import EnginePool


@dataclass(frozen=True, slots=True)
class Member:
    """An instance that moves: on which hosts it is and will be, and whether requests reach it now."""

    name: str
    pool: EnginePool
    hosts: frozenset[str]
    serves: bool


class OnHosts(Protocol):
    """Whatever is on hosts: an instance, a member."""

    @property
    def hosts(self) -> Collection[str]:
        """Their names."""


On = TypeVar("On", bound=OnHosts)


def first_group(members: Sequence[Member], minimum: Mapping[EnginePool, int]) -> frozenset[str] | None:
    """Half of each pool, where that can be: it moves while the others serve, and then serves while they move.

    So both need at least the minimum of each pool, and one. What shares a host moves together. None where
    there are too few.
    """
    together = joined(members)
    turns = ([*together[n:], *together[:n]] for n in range(len(together)))
    tries = (_half(turn, members, minimum) for turn in turns)
    return next((names for names in tries if enough(members, names, minimum)), None)


def enough(members: Iterable[Member], first: Collection[str], minimum: Mapping[EnginePool, int]) -> bool:
    """Do both groups keep what each pool needs?"""
    everyone = tuple(members)
    left = Counter(m.pool for m in everyone if m.serves and m.name not in first)
    moved = Counter(m.pool for m in everyone if m.name in first)
    return all(min(left[pool], moved[pool]) >= max(1, minimum[pool]) for pool in {m.pool for m in everyone})


def one_of_each(members: Sequence[Member]) -> frozenset[str]:
    """The smallest group that serves by itself, whatever is left: for those who accept a break."""
    found: dict[str, Member] = {}
    for group in joined(members):
        if any(m.pool not in found for m in group):
            found |= {m.pool: m for m in group}
    names = {m.name for m in found.values()}
    return frozenset(m.name for g in joined(members) if names & {m.name for m in g} for m in g)


def joined(members: Sequence[Member]) -> list[tuple[Member, ...]]:
    """Instances that share hosts, directly or through others, together."""
    return sharing_hosts((member,) for member in members)


def sharing_hosts(groups: Iterable[tuple[On, ...]]) -> list[tuple[On, ...]]:
    """Groups that share a host, directly or through others, as one."""
    found: list[tuple[On, ...]] = []
    for group in groups:
        hosts = {host for one in group for host in one.hosts}
        near = [other for other in found if any(hosts & {*one.hosts} for one in other)]
        found = [other for other in found if other not in near]
        found.append((*(one for other in near for one in other), *group))
    return found


def _half(
    together: Iterable[tuple[Member, ...]], members: Sequence[Member], minimum: Mapping[EnginePool, int]
) -> frozenset[str]:
    """Groups one after the other, as long as one of their pools is short of its half and all keep enough."""
    whole = Counter(m.pool for m in members)
    short = {pool: max(1, minimum[pool], n // 2) for pool, n in whole.items()}
    spare = {pool: -max(1, minimum[pool]) for pool in whole}
    for pool, n in Counter(m.pool for m in members if m.serves).items():
        spare[pool] += n
    chosen: set[str] = set()
    for group in together:
        taken = Counter(m.pool for m in group if m.serves)
        helps = any(short[m.pool] > 0 for m in group)
        if helps and all(spare[pool] >= n for pool, n in taken.items()):
            chosen |= {m.name for m in group}
            for m in group:
                short[m.pool] -= 1
                spare[m.pool] -= m.serves
    return frozenset(chosen)
