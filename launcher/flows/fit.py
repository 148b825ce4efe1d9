"""fit: what each pool's GPUs hold, what is left for KV, and what to change where that is not enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from launcher.fit import Budget, Edit, Shape, budget, nearest
from launcher.fit.grid import grid
from launcher.flows.launches import launches_of
from launcher.lint.fitting import shape, utilization
from launcher.lint.quantities import QUANTITIES
from launcher.lint.reading import Reading
from launcher.lint.values import UntoldError
from launcher.load.data import Data
from launcher.load.history import read_history
from launcher.load.knowledge import read_snapshots
from launcher.model.architecture import Architecture
from launcher.model.knowledge import Knowledge
from launcher.model.launch import Launch
from launcher.model.problem import InputError, Problem
from launcher.model.profile import Hardware
from launcher.model.wish import Wanted

UTILIZATION = "gpu-memory-utilization"


@dataclass(frozen=True, slots=True)
class Load:
    """Tokens of one request."""

    prompt: int
    answer: int

    def tokens(self, pool: str) -> int:
        """What it holds of a pool's KV: prefill gives a request away after its first token."""
        return self.prompt + (1 if pool == "prefill" else self.answer)


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
    edits: tuple[str, ...] = ()
    """Where it does not fit: what to change, so that it does."""

    @property
    def fits(self) -> bool:
        """Does it?"""
        return self.budget.fits


@dataclass(frozen=True, slots=True)
class _Asked:
    """A pool's first launch, and what it needs to be worked out."""

    launch: Launch
    shape: Shape
    architecture: Architecture
    hardware: Hardware
    utilization: float
    """The highest that may be proposed."""


def read_engines(data: Data) -> Knowledge:
    """What is known of releases, without the rules."""
    return Knowledge(read_history(data), snapshots=read_snapshots(data))


def fit(wanted: Wanted, knowledge: Knowledge, load: Load, *, name: str) -> tuple[Row, ...]:
    """A row for each engine pool. InputError where something that memory depends on is not known."""
    instances: dict[str, int] = {n: pool.instances for n, pool in wanted.wish.inventory.pools.items()}
    return tuple(
        _with_edits(_row(name, asked, load, instances=instances[asked.launch.pool]), asked, load)
        for asked in _pools(wanted, knowledge)
    )


def compare(
    layouts: Iterable[Wanted], shaped_like: Wanted, knowledge: Knowledge, load: Load, *, gpus: int
) -> tuple[Row, ...]:
    """Every pool of every layout, and every other shape of the pools of `shaped_like`, as often as so many
    GPUs hold it: what fits first, then by requests."""
    rows = [
        _row(wanted.wish.inventory.layout, asked, load, instances=gpus // asked.shape.gpus)
        for wanted in layouts
        for asked in _pools(wanted, knowledge)
    ]
    taken = {(row.pool, row.budget.shape) for row in rows}
    for asked in _pools(shaped_like, knowledge):
        for other in grid(asked.architecture, asked.hardware, asked.shape, gpus=gpus):
            if (asked.launch.pool, other) not in taken:
                like = replace(asked, shape=other)
                rows.append(_row("grid", like, load, instances=gpus // other.gpus))
    return tuple(sorted(rows, key=lambda row: (row.pool, not row.fits, -row.requests, row.name)))


def _pools(wanted: Wanted, knowledge: Knowledge) -> Iterator[_Asked]:
    """The first launch of each pool: all instances of a pool are alike."""
    first: dict[str, Launch] = {}
    for launch in launches_of(wanted):
        first.setdefault(launch.pool, launch)
    for launch in first.values():
        reading = Reading(launch, knowledge, QUANTITIES)
        try:
            yield _Asked(
                launch=launch,
                shape=shape(reading),
                architecture=reading.architecture(),
                hardware=reading.hardware(),
                utilization=_highest_utilization(launch, knowledge),
            )
        except UntoldError as error:
            what = f"memory of {launch.name} cannot be worked out: {error.unknown.reason} is not known"
            do = "add it to configs/: models have `architecture`, hardware has `overheads`"
            raise InputError(Problem(what, where=launch.source, do=do)) from None


def _highest_utilization(launch: Launch, knowledge: Knowledge) -> float:
    """The release's own default is the most that is proposed: beyond it little is left for surprises."""
    plain = {name: setting for name, setting in launch.flags.items() if name != UTILIZATION}
    return utilization(Reading(replace(launch, flags=plain), knowledge, QUANTITIES))


def _row(name: str, asked: _Asked, load: Load, *, instances: int) -> Row:
    made = budget(asked.architecture, asked.hardware, asked.shape)
    each = made.requests_per_instance(load.tokens(asked.launch.pool))
    return Row(name, asked.launch.pool, instances, made, requests=each * instances)


def _with_edits(row: Row, asked: _Asked, load: Load) -> Row:
    """The nearest shape that fits, as edits; a row that fits stays as it is."""
    if row.fits:
        return row
    found = nearest(
        asked.architecture,
        asked.hardware,
        asked.shape,
        utilization=asked.utilization,
        context=load.tokens(asked.launch.pool),
    )
    if found is None:
        return replace(row, edits=("no change of this layout makes it fit: take GPUs with more memory",))
    edits, made = found
    return replace(row, edits=tuple(_words(edit, made.shape, asked.launch) for edit in edits))


def _words(edit: Edit, after: Shape, launch: Launch) -> str:
    """An edit of the inventory (of the layout, for parallelism), and the line that says otherwise now."""
    value = f"{edit.after:g}"
    match edit.knob:
        case "utilization":
            return _setting(launch, UTILIZATION, value)
        case "dispatch_tokens" if after.dispatch_tokens != after.batched_tokens:
            return f'environment: {{{launch.pool}: {{VLLM_MOE_DP_CHUNK_SIZE: "{value}"}}}}'
        case "dispatch_tokens" | "batched_tokens":
            return _setting(launch, "max-num-batched-tokens", value)
        case "max_model_len":
            return _setting(launch, "max-model-len", str(int(edit.after)))
        case "redundant_experts":
            return f"num_redundant_experts: {value} in eplb-config{_now(launch, 'eplb-config')}"
        case "draft_tokens":
            return f"settings: {{all: {{speculative-config: null}}}}{_now(launch, 'speculative-config')}"
        case "tensor_parallel" | "hosts":
            words = f"tensor_parallel: {after.tensor_parallel}, data_parallel: {after.data_parallel}"
            words += f", hosts_per_instance: {after.hosts}"
            return f"{launch.pool}: {{{words}}} in the layout{_now(launch, 'tensor-parallel-size')}"


def _setting(launch: Launch, name: str, value: str) -> str:
    return f"settings: {{{launch.pool}: {{{name}: {value}}}}}{_now(launch, name)}"


def _now(launch: Launch, name: str) -> str:
    written = launch.flags.get(name)
    return f" (now by {written.source})" if written else ""
