"""What a benchmark measured, and what the inventory says → Measurement, and its JSON; knows no file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass

from launcher.bench.measure import rates
from launcher.bench.search import Answer
from launcher.model.bench import Axis, Measured, Method, Sides, Target
from launcher.model.deployment import Deployment, Instance, Process
from launcher.model.measurement import DERIVED, FORMAT, Found, Measurement, Seat, Served
from launcher.model.run import RunRecord
from launcher.model.sla import Sla, Workload
from launcher.model.values import Json
from launcher.model.wish import Wanted, Wish


def measurement_of(
    wanted: Wanted,
    record: RunRecord,
    *,
    target: Target,
    workload: Workload,
    sla: Sla | None,
    method: Method,
    points: Sequence[Measured],
    seed: int = 1,
    repeats: int = 1,
    search: Found | None = None,
) -> Measurement:
    """All of it, before the first point as well as after the last."""
    wish, deployment = wanted.wish, wanted.deployment
    assert deployment, "what is benchmarked is deployed"
    through = [r for r in deployment.routers if target.name == "service"]
    return Measurement(
        format=FORMAT,
        run=record.id,
        command=("dsv32-launch", *record.argv),
        who=record.who,
        why=record.why,
        started=record.started,
        ended=max((r.date for m in points for r in m.results), default=""),
        cluster=deployment.cluster,
        inventory=wish.inventory.path,
        layout=wish.inventory.layout,
        hardware=wish.inventory.hardware,
        model=wish.inventory.model,
        versions={**record.versions, **_versions(wish)},
        data_digest=record.data_digest,
        target=target.name,
        through=target.through,
        url=target.url,
        client_host=target.host,
        instances=tuple(_served(i, wish) for i in target.instances),
        routers=tuple(dict.fromkeys(r.host for r in through)),
        router_command=_router_command(deployment) if through else (),
        workload=workload,
        method=method,
        seed=seed,
        repeats=repeats,
        points=tuple(points),
        sla=sla,
        search=search,
    )


def found_of(axis: Axis, answer: Answer) -> Found:
    """What a search came to, to be kept."""
    up = answer.next_up
    return Found(axis, answer.highest, answer.confirmed, up.value if up else None, up.verdict if up else None)


def document(measurement: Measurement) -> str:
    """Its JSON. Numbers of the client are by its own names, and as it wrote them."""
    told = plain(measurement)
    assert isinstance(told, dict)
    return json.dumps({**told, "points": [point_of(m, measurement) for m in measurement.points]}, indent=1)


def point_of(measured: Measured, sides: Sides) -> Json:
    """A point for programs, in every place where one is told: its fields, and what follows from them."""
    told = plain(measured)
    assert isinstance(told, dict)
    return {**told, DERIVED: _summary(measured, sides)}


def plain(value: object) -> Json:
    """A value as JSON has it, without the places in files that it was read from: these were of that day."""
    if is_dataclass(value):
        named = ((f.name, getattr(value, f.name)) for f in fields(value))
        return {k: plain(v) for k, v in named if k not in ("source", "places") and v is not None}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if isinstance(value, (str, int, float)) else str(value)


def _summary(measured: Measured, sides: Sides) -> Json:
    return {
        "point": str(measured.point),
        "verdict": measured.verdict,
        "margins": {j.name: j.margin for j in measured.judgements if j.margin is not None},
        "rates": [
            [f"{rate.value:.3f} {rate.tokens}/s per {rate.over}" for rate in rates(r, sides)]
            for r in measured.results
        ],
    }


def _versions(wish: Wish) -> Mapping[str, str]:
    stack = wish.profile.stack
    if stack is None:
        return {}
    pinned = {"stack": stack.name, "engine": f"{stack.engine} {stack.engine_version}", "router": stack.router}
    return {**pinned, "lock": stack.lock_digest[:12], **stack.variables}


def _served(instance: Instance, wish: Wish) -> Served:
    layout = wish.profile.layout
    assert layout, "what serves has a layout"
    pool = layout.engines[instance.pool]
    seats = tuple(_seat(p) for p in instance.processes)
    return Served(
        instance.name, instance.pool, instance.style, pool.tensor_parallel, pool.data_parallel, seats
    )


def _seat(process: Process) -> Seat:
    ranks = {str(rank.index): rank.gpus for rank in process.ranks}
    environment = {name: str(setting.value) for name, setting in process.environment.items()}
    return Seat(process.host, process.unit, ranks, process.argv(), environment)


def _router_command(deployment: Deployment) -> tuple[str, ...]:
    return deployment.routers[0].argv()
