"""Whether enough instances of each pool serve while some of them are away; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from launcher.model.deployment import Instance
from launcher.model.inventory import Pool, PoolName
from launcher.model.problem import Problem

Waves = tuple[tuple[Instance, ...], ...]
"""Instances that are away at the same time, in order."""


def too_few(
    pools: Mapping[PoolName, Pool],
    instances: Iterable[Instance],
    waves: Sequence[Iterable[Instance]],
    serving: Collection[str],
    *,
    do: str,
    why: str = "",
    drained: Collection[str] = (),
) -> Iterator[Problem]:
    """A Problem for each pool that would fall below its minimum while one of these waves is away.

    `serving`: the instances that serve and get requests. One that comes back serves too, unless it is
    `drained`. A wave in which nothing serves takes nothing away.
    """
    by_pool = {i.name: i.pool for i in instances}
    for name in dict.fromkeys(i.pool for wave in waves for i in wave):
        pool, own = pools[name], {s for s in serving if by_pool.get(s) == name}
        left = _least([{i.name for i in wave if i.pool == name} for wave in waves], own, drained)
        if left is not None and left < pool.minimum:
            yield Problem(
                what=f"pool {name} would have {left} instances that serve, its minimum is {pool.minimum}",
                where=pool.source,
                why=f"{why}these serve now: {', '.join(sorted(own)) or 'none'}",
                do=do,
            )


def _least(waves: Iterable[set[str]], serving: Collection[str], drained: Collection[str]) -> int | None:
    """The fewest that serve while a wave is away; None where no wave takes anything away."""
    now, counts = set(serving), []
    for wave in waves:
        if wave & now:
            counts.append(len(now - wave))
        now |= wave - set(drained)
    return min(counts, default=None)
