"""predict: how fast a layout should be under a load, by the model, beside its error on what was published."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from launcher.fit import budget
from launcher.fit.kv import kv_bytes_per_token
from launcher.fit.weights import local_experts
from launcher.flows.pool_shapes import PoolShape, pool_shapes
from launcher.load.choice import Choice, read
from launcher.load.data import Data
from launcher.load.points import read_performance, read_points
from launcher.model.architecture import Architecture
from launcher.model.knowledge import Knowledge
from launcher.model.performance import Performance
from launcher.model.problem import InputError, Problem
from launcher.model.profile import EnginePool, Model
from launcher.model.sla import Sla, Workload
from launcher.model.wish import Wanted
from launcher.predict import decode, prefill
from launcher.predict.compare import Error, errors
from launcher.predict.decode import INDEX_BYTES
from launcher.predict.group import Group, Part
from launcher.predict.service import Load, Prediction, Service, Side, predict

WORKLOADS = {"prefill": "article-prefill", "decode": "article-decode"}
"""The article's load for one pool alone."""
SERVICE_WORKLOAD = "article-2p1d"


@dataclass(frozen=True, slots=True)
class Row:
    """One load, and what the model says of it."""

    load: Load
    prediction: Prediction
    prefill: tuple[Part, ...]
    """GPU microseconds of a prompt token."""
    decode: tuple[Part, ...]
    """Milliseconds of a step at this load."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """All rows of a workload, and how well the model does on the points it can be held against."""

    name: str
    rows: tuple[Row, ...]
    errors: tuple[Error, ...]
    fitted: frozenset[str]
    """Points that the constants were fitted on."""
    sla: Sla | None = None


def workload_for(wanted: Wanted) -> str:
    """The workload that the article put on a layout of these pools."""
    layout = wanted.wish.profile.layout
    pools = tuple(layout.engines) if layout else ()
    return WORKLOADS[pools[0]] if len(pools) == 1 else SERVICE_WORKLOAD


def loads_of(workload: Workload) -> tuple[Load, ...]:
    """One load for each concurrency of a workload."""
    ladder = workload.concurrency or (0,)
    size = (workload.input_tokens, workload.output_tokens)
    return tuple(Load(*size, concurrency=c, rate=workload.request_rate or 0.0) for c in ladder)


def forecast(
    wanted: Wanted, knowledge: Knowledge, data: Data, *, name: str, loads: Iterable[Load], sla: Sla | None
) -> Forecast:
    """What the model says. InputError where it has no constants for the hardware or the model."""
    pools = {p.pool: p for p in pool_shapes(wanted, knowledge)}
    first = next(iter(pools.values()), None)
    if first is None:
        what = "nothing is laid out that could be fast or slow"
        raise InputError(Problem(what, wanted.wish.inventory.path, do="set `layout:` in the inventory"))
    speed = speed_of(first, data)
    told = tuple(errors_of(data, hardware=first.hardware.name, speed=speed))
    fitted = frozenset(n for n, p in read_points(data).items() if p.fitted)
    rows = tuple(_row(wanted, pools, speed, load) for load in loads)
    return Forecast(name, rows, told, fitted, sla)


def _row(wanted: Wanted, pools: Mapping[EnginePool, PoolShape], speed: Performance, load: Load) -> Row:
    counts = wanted.wish.inventory.pools
    sides = {name: side(pool, load, instances=counts[name].instances) for name, pool in pools.items()}
    architecture = next(iter(pools.values())).architecture
    service = Service(architecture, speed, prefill=sides.get("prefill"), decode=sides.get("decode"))
    made = predict(service, load)
    context = load.input_tokens + load.output_tokens / 2
    return Row(
        load,
        made,
        prefill.token_cost(service.prefill.group, architecture, speed, prompt=load.input_tokens)
        if service.prefill
        else (),
        decode.step(
            service.decode.group,
            architecture,
            speed,
            requests=max(made.in_decode, 1.0),
            context=context,
        )
        if service.decode
        else (),
    )


def side(pool: PoolShape, load: Load, *, instances: int) -> Side:
    """The pool's instances, and how many requests of the load they hold. InputError where it is none."""
    shape, architecture = pool.shape, pool.architecture
    index = INDEX_BYTES if architecture.sparse else 0
    group = Group(
        tensor_parallel=shape.tensor_parallel,
        data_parallel=shape.data_parallel,
        low_latency=shape.low_latency,
        head_multiple=pool.reading.whole("head_multiple") if architecture.sparse else 1,
        experts_on_gpu=local_experts(architecture, shape),
        batched_tokens=shape.batched_tokens,
        draft_tokens=shape.draft_tokens,
        kv_bytes=kv_bytes_per_token(architecture, shape.kv_dtype, layers=1) - index,
    )
    held = budget(architecture, pool.hardware, shape).requests_per_rank(
        load.input_tokens + load.output_tokens
    )
    most = min(held, shape.max_seqs)
    if pool.pool == "decode" and most < 1:
        what = f"decode holds no request of {load.input_tokens} + {load.output_tokens} tokens"
        raise InputError(Problem(what, pool.launch.source, do="dsv32-launch fit"))
    return Side(group, instances, most)


def speed_of(pool: PoolShape, data: Data) -> Performance:
    """The constants of a pool's hardware. InputError where there are none, or only those of other models."""
    hardware, model = pool.hardware.name, pool.launch.model
    speed = read_performance(hardware, data)
    if speed is None:
        what = f"no speed is known of hardware {hardware}"
        do = f"measure it and write configs/performance/{hardware}.yaml"
        raise InputError(Problem(what, where=pool.hardware.source, do=do))
    found = (pool.architecture.layers, pool.architecture.hidden)
    if found != (speed.layers, speed.hidden):
        what = f"model {model.name if model else ''} has {found[0]} layers of width {found[1]}, "
        what += f"the constants are of {speed.layers} of {speed.hidden}"
        do = "ask for a model of that shape, for instance deepseek-v3.2"
        raise InputError(Problem(what, where=speed.source, do=do))
    return speed


def errors_of(data: Data, *, hardware: str, speed: Performance) -> Iterator[Error]:
    """How far the model is off on each published point of a hardware."""
    known: dict[str, Architecture | None] = {}
    for name, point in read_points(data).items():
        if point.hardware != hardware:
            continue
        if point.model not in known:
            known[point.model] = read(Model, Choice(point.model, point.source), data).architecture
        architecture = known[point.model]
        if architecture is None:
            what = f"point {name} is of model {point.model}, whose dimensions are not known"
            raise InputError(Problem(what, where=point.source, do="give the model an `architecture`"))
        yield from errors(name, point, architecture, speed)
