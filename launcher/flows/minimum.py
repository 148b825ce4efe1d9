"""Whether enough of a pool serve while some of it is away; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from launcher.model.deployment import Instance
from launcher.model.inventory import Pool, PoolName
from launcher.model.problem import Problem


def too_few(
    pools: Mapping[PoolName, Pool],
    waves: Sequence[Iterable[Instance]],
    up: Collection[str],
    *,
    do: str,
    why: str = "",
    drained: Collection[str] = (),
) -> Iterator[Problem]:
    """A Problem for each pool that would fall below its minimum while one of these waves is away.

    `up`: the instances that serve and get requests; what comes back serves, too, unless it is `drained`.
    A wave of nothing that serves takes nothing away.
    """
    for name in dict.fromkeys(i.pool for wave in waves for i in wave):
        pool, own = pools[name], {u for u in up if u.startswith(f"{name}-")}
        left = _least([{i.name for i in wave if i.pool == name} for wave in waves], own, drained)
        if left is not None and left < pool.minimum:
            yield Problem(
                what=f"pool {name} would have {left} instances that serve, its minimum is {pool.minimum}",
                where=pool.source,
                why=f"{why}these serve now: {', '.join(sorted(own)) or 'none'}",
                do=do,
            )


def _least(waves: Iterable[set[str]], up: Collection[str], drained: Collection[str]) -> int | None:
    """The fewest that serve while a wave does not; None where none takes anything away."""
    serve, counts = set(up), []
    for wave in waves:
        if wave & serve:
            counts.append(len(serve - wave))
        serve |= wave - set(drained)
    return min(counts, default=None)
