"""Waves: which instances start together, and which one after the other; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from launcher.model.deployment import Instance
from launcher.model.plan import Action, Change


def waves(instances: Iterable[Instance], changes: Sequence[Change]) -> tuple[tuple[Instance, ...], ...]:
    """Instances that start from nothing go first and together, for they take nothing away. Those that serve
    now are restarted one of a pool after the other, so that the rest of the pool goes on."""
    names = {c.instance for c in changes}
    serving = {c.instance for c in changes if c.action is Action.RESTART}
    moved = [i for i in instances if i.name in names]
    fresh = tuple(i for i in moved if i.name not in serving)
    pools = [
        [i for i in moved if i.pool == pool and i.name in serving]
        for pool in dict.fromkeys(i.pool for i in moved)
    ]
    rolling = (tuple(i for i in row if i is not None) for row in zip_longest(*pools))
    return tuple(wave for wave in (fresh, *rolling) if wave)
