"""What the model of `predict` says of points that were measured, by the command lines kept of them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace

from launcher.bench.beside import Foretold
from launcher.flows.fit import read_engines
from launcher.flows.pool_shapes import PoolShape, shape_of
from launcher.flows.predict import errors_of, side, speed_of
from launcher.load.choice import Choice, read
from launcher.load.data import Data
from launcher.load.foreign import Given, read_text
from launcher.load.points import read_performance, read_points
from launcher.model.bench import Point
from launcher.model.knowledge import Knowledge
from launcher.model.launch import Launch
from launcher.model.measurement import Measurement, Served
from launcher.model.performance import Performance
from launcher.model.problem import InputError
from launcher.model.profile import EnginePool, Hardware, Model
from launcher.predict.service import Load, Service, predict

MADE_UP = "connectors-alone"
"""Words of the history: connectors that give decode its prompts' KV without computing any."""


def foretold(one: Measurement, data: Data) -> Foretold:
    """Its figures at each point, or why the model has none: another hardware, model or load than its own."""
    if read_performance(one.hardware, data) is None:
        return Foretold(nothing=f"no speed is known of hardware {one.hardware}")
    try:
        return _foretold(one, data)
    except InputError as error:
        return Foretold(nothing=error.problems[0].what)


def _foretold(one: Measurement, data: Data) -> Foretold:
    knowledge = read_engines(data)
    pools = {s.pool: shape_of(s.pool, launch_of(s, one, data, knowledge), knowledge) for s in one.instances}
    speed = speed_of(next(iter(pools.values())), data)
    if nothing := next(_unlike(one, pools), ""):
        return Foretold(nothing=nothing)
    figures = {m.point: _figures(one, m.point, pools, speed) for m in one.points}
    return Foretold(figures, tuple(_other(one, data)), _off(one, data, speed))


def launch_of(served: Served, one: Measurement, data: Data, knowledge: Knowledge) -> Launch:
    """The first process of an instance, by its command line. InputError where that starts no engine."""
    seat = served.seats[0]
    given = Given(
        knowledge.snapshots,
        model=read(Model, Choice(one.model, one.run), data),
        hardware=read(Hardware, Choice(one.hardware, one.run), data),
        version=one.versions.get("engine", "").rpartition(" ")[2],
    )
    words = shlex.join([*(f"{name}={value}" for name, value in seat.environment.items()), *seat.command])
    found = read_text(words, f"{served.name} on {seat.host}", given=given)
    if not found.launches:
        raise InputError(*found.problems)
    routed = bool(one.routers)
    pool = served.pool if routed else ""
    return replace(found.launches[0], pool=pool, disaggregated=routed, hosts=len(served.seats))


def _unlike(one: Measurement, pools: Mapping[EnginePool, PoolShape]) -> Iterator[str]:
    """Why the model, in which prefill only prefills and decode only decodes, says nothing of a load."""
    tokens = one.workload.output_tokens
    if pools.keys() == {"prefill"} and tokens > 1:
        yield f"it has no answers of {tokens} tokens by prefill instances alone"
    if pools.keys() == {"decode"}:
        reading = pools["decode"].reading
        if str(reading.value("connector")) not in reading.words(MADE_UP):
            yield "it has no decode instances that compute their prompts themselves"
    if any(not (m.point.concurrency or m.point.rate) for m in one.points):
        yield "it has no load without a bound"


def _figures(
    one: Measurement, point: Point, pools: Mapping[EnginePool, PoolShape], speed: Performance
) -> Mapping[str, float]:
    """By the words of `Figure`. What queues without end has no TTFT."""
    load = Load(
        one.workload.input_tokens, one.workload.output_tokens, point.concurrency or 0, point.rate or 0.0
    )
    sides = {name: side(pool, load, instances=one.count(name)) for name, pool in pools.items()}
    architecture = next(iter(pools.values())).architecture
    made = predict(Service(architecture, speed, sides.get("prefill"), sides.get("decode")), load)
    endless = not load.concurrency and made.requests_per_s < load.rate
    return {
        "tokens_per_s mean": made.tokens_per_s,
        **({"ttft_ms mean": made.ttft_ms} if made.ttft_ms and not endless else {}),
        **({"tpot_ms mean": made.tpot_ms} if made.tpot_ms else {}),
    }


def _other(one: Measurement, data: Data) -> Iterator[str]:
    """What the points that the constants were fitted on do not share with ours."""
    fitted = [p for p in read_points(data).values() if p.fitted and p.hardware == one.hardware]
    engines = tuple(dict.fromkeys(p.engine for p in fitted))
    if not {e.rpartition(" ")[2] for e in engines} & set(one.versions.get("engine", "").split()):
        yield f"engine {', '.join(engines)}"
    if one.workload.exact_input_tokens is None:
        yield f"prompts of exactly {one.workload.input_tokens} tokens"


def _off(one: Measurement, data: Data, speed: Performance) -> Mapping[str, tuple[float, float]]:
    """Figure → how far it was off on published points, those left out that constants were fitted on."""
    known = read_points(data)
    found: dict[str, list[float]] = {}
    for error in errors_of(data, hardware=one.hardware, speed=speed):
        if not known[error.point].fitted:
            found.setdefault(f"{error.measure} {known[error.point].ttft_of}", []).append(error.relative)
    return {name: (min(shares), max(shares)) for name, shares in found.items()}
