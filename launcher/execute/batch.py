"""Batch: the ops of one host's changes in one request, systemctl asked as seldom as can be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from launcher.model.plan import Change, Op

WRITES = frozenset({"put", "folder", "link", "attributes"})
"""Ops that no unit of another step waits for: what systemctl has to do is gathered behind a row of them."""
WITHIN_S = {"package": 1800, "purge": 1800, "units": 960, "order": 600}
OP_WITHIN_S = 60
"""Seconds for ops that bring no deadline of their own; the agent ends its programs earlier or then."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Ops in order, and for each the changes that it belongs to."""

    ops: tuple[Op, ...]
    owners: tuple[tuple[Change, ...], ...]

    @property
    def within_s(self) -> float:
        """Seconds that all ops may take together."""
        return sum(float(op.args.get("within_s", WITHIN_S.get(op.verb, OP_WITHIN_S))) for op in self.ops)

    def failed(self, index: int) -> tuple[Change, ...]:
        """The changes whose op at `index` failed."""
        return self.owners[index]

    def done(self, index: int) -> tuple[Change, ...]:
        """The changes all of whose ops come before `index`."""
        begun = {id(c) for owners in self.owners[index:] for c in owners}
        before = (c for owners in self.owners[:index] for c in owners)
        return tuple({id(c): c for c in before if id(c) not in begun}.values())


def batch(changes: Iterable[Change]) -> Batch:
    """All ops of one host's changes; those of systemctl merged where only writes stand between them."""
    rows: list[tuple[Op, tuple[Change, ...]]] = []
    waiting: list[tuple[Op, Change]] = []
    for change in changes:
        for op in change.ops:
            if op.verb == "units":
                waiting.append((op, change))
                continue
            if op.verb not in WRITES:
                rows.extend(_merged(waiting))
                waiting = []
            rows.append((op, (change,)))
    rows.extend(_merged(waiting))
    return Batch(ops=tuple(op for op, _ in rows), owners=tuple(owners for _, owners in rows))


def _merged(waiting: Sequence[tuple[Op, Change]]) -> list[tuple[Op, tuple[Change, ...]]]:
    if not waiting:
        return []
    args: dict[str, Any] = {}
    for op, _ in waiting:
        for verb, names in op.args.items():
            args[verb] = True if verb == "reload" else list(dict.fromkeys([*args.get(verb, ()), *names]))
    owners = {id(change): change for _, change in waiting}
    return [(Op("units", args), tuple(owners.values()))]
