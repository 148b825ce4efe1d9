"""fit: what each pool's GPUs hold, what is left for KV, and what to change where that is not enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from launcher.fit import Budget, Shape, budget, nearest
from launcher.fit.budget import overheads_of
from launcher.fit.grid import grid
from launcher.flows.alone import Names, wanted_of_layout
from launcher.flows.pool_shapes import PoolShape, pool_shapes
from launcher.flows.remedies import UTILIZATION, remedy
from launcher.lint.fitting import utilization
from launcher.lint.quantities import QUANTITIES
from launcher.lint.reading import Reading
from launcher.load.data import Data
from launcher.load.history import read_history
from launcher.load.knowledge import read_snapshots
from launcher.load.wording import count
from launcher.model.knowledge import Knowledge
from launcher.model.problem import InputError, Problem
from launcher.model.wish import Wanted


@dataclass(frozen=True, slots=True)
class Load:
    """Tokens of one request."""

    prompt: int
    answer: int

    def tokens(self, side: str) -> int:
        """What it holds of KV: a prefill side gives a request away after its first token."""
        return self.prompt + (1 if side == "prefill" else self.answer)


@dataclass(frozen=True, slots=True)
class Row:
    """One pool, or one shape that it could have."""

    name: str
    """The inventory's or layout's; `grid` for a shape that no file has."""
    pool: str
    instances: int
    budget: Budget
    requests: int
    """Of the load asked for, held at once by all instances."""
    source: str = ""
    """`file:line` of the pool."""
    edits: tuple[str, ...] = ()
    """Where it does not fit: what to change, so that it does."""

    @property
    def fits(self) -> bool:
        """Does it?"""
        return self.budget.fits


def read_engines(data: Data) -> Knowledge:
    """What is known of releases, without the rules."""
    return Knowledge(read_history(data), snapshots=read_snapshots(data))


def fit(wanted: Wanted, knowledge: Knowledge, load: Load, *, name: str) -> tuple[Row, ...]:
    """A row for each engine pool. InputError where something that memory depends on is not known."""
    instances: dict[str, int] = {n: pool.instances for n, pool in wanted.wish.inventory.pools.items()}
    return tuple(
        _with_edits(_row(name, asked, load, instances=instances[asked.pool]), asked, load)
        for asked in pool_shapes(wanted, knowledge)
    )


def compare(
    names: Names, data: Data, knowledge: Knowledge, load: Load, *, gpus: int
) -> tuple[tuple[Row, ...], tuple[Problem, ...]]:
    """Every pool of every layout, and every other shape of the pools of the layout named, each as often as so
    many GPUs hold it: what fits first, then by requests. Beside them what keeps a layout out."""
    rows: list[Row] = []
    left_out: list[Problem] = []
    asked_for = tuple(pool_shapes(wanted_of_layout(names, data), knowledge))
    for asked in asked_for:
        overheads_of(asked.hardware)
    for name in data.names("configs/layouts", holding=".yaml"):
        try:
            wanted = wanted_of_layout(replace(names, layout=name), data)
        except InputError as error:
            left_out += error.problems
            continue
        for asked in pool_shapes(wanted, knowledge):
            times = _times(asked, asked.shape, gpus)
            if times:
                rows.append(_row(name, asked, load, instances=times))
            else:
                what = f"{name} {asked.pool} needs {count(asked.shape.gpus, 'GPU')}, there are {gpus}"
                left_out.append(Problem(what, where=asked.launch.source, do="give more with --gpus"))
    taken = {(row.pool, row.budget.shape) for row in rows}
    for asked in asked_for:
        for other in grid(asked.architecture, asked.hardware, asked.shape, gpus=gpus):
            if (asked.pool, other) not in taken:
                like = replace(asked, shape=other)
                rows.append(_row("grid", like, load, instances=_times(asked, other, gpus)))
    return tuple(sorted(rows, key=_rank)), tuple(left_out)


def misfits(rows: Iterable[Row]) -> Iterator[Problem]:
    """A Problem for each row that does not fit, with the nearest shape that does."""
    for row in rows:
        if not row.fits:
            what = f"{row.name} {row.pool} does not fit: {'; '.join(row.budget.reasons)}"
            yield Problem(what, where=row.source, do="\n".join(row.edits))


def _times(asked: PoolShape, shape: Shape, gpus: int) -> int:
    """How often so many GPUs hold a shape, hosts undivided."""
    return gpus // (shape.hosts * asked.hardware.gpus_per_host)


def _rank(row: Row) -> tuple[str, bool, int, str]:
    return row.pool, not row.fits, -row.requests, row.name


def _highest_utilization(asked: PoolShape) -> float:
    """The release's own default is the most that is proposed: beyond it little is left for surprises."""
    plain = {name: setting for name, setting in asked.launch.flags.items() if name != UTILIZATION}
    return utilization(Reading(replace(asked.launch, flags=plain), asked.reading.knowledge, QUANTITIES))


def _row(name: str, asked: PoolShape, load: Load, *, instances: int) -> Row:
    made = budget(asked.architecture, asked.hardware, asked.shape)
    each = made.requests_per_instance(load.tokens(asked.launch.pool))
    return Row(name, asked.pool, instances, made, each * instances, asked.launch.source)


def _with_edits(row: Row, asked: PoolShape, load: Load) -> Row:
    """The nearest shape that fits, as edits; a row that fits stays as it is."""
    if row.fits:
        return row
    found = nearest(
        asked.architecture,
        asked.hardware,
        asked.shape,
        utilization=_highest_utilization(asked),
        context=load.tokens(asked.launch.pool),
    )
    if found is None:
        return replace(row, edits=("take a layout that fits: dsv32-launch fit --all lists them",))
    edits, made = found
    return replace(
        row, edits=tuple(remedy(e, made.shape, pool=asked.pool, launch=asked.launch) for e in edits)
    )
