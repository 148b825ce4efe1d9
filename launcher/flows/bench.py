"""bench: loads on a service, run after run, the verdict on each, the search for the highest that holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from launcher.bench.keep import measurement_of
from launcher.bench.search import Answer, Ask, Tried, decide, so_far
from launcher.bench.target import target_of
from launcher.bench.verdict import judge, long_enough
from launcher.bench.workload import at, points_of
from launcher.execute.hands import Hands
from launcher.flows.bench_run import Bench, Record, run, taken
from launcher.health.hands import answers_of
from launcher.model.bench import Axis, Measured, Method, Point, Result
from launcher.model.facts import Probe, Unknown
from launcher.model.measurement import Found, Measurement
from launcher.model.problem import InputError, LauncherError, Problem
from launcher.model.run import Event, RunRecord
from launcher.model.sla import Sla, Workload
from launcher.model.wish import Wanted

MODELS = "/v1/models"
"""What a service and every instance of it answer without work."""


@dataclass(frozen=True, slots=True)
class Searched:
    """A search, measurement by measurement, and what it came to."""

    axis: Axis
    measured: tuple[Measured, ...]
    answer: Answer


def bench_of(
    wanted: Wanted, workload: Workload, sla: Sla | None, method: Method, *, target: str, **more: Any
) -> Bench:
    """What is to be measured. InputError where its engine has no load generator, or for a wrong target."""
    deployment, engine = wanted.deployment, wanted.wish.profile.engine
    assert deployment, "what is benchmarked is deployed"
    assert engine, "what serves has an engine"
    if engine.client is None:
        what = f"engine {engine.name} has no load generator"
        raise InputError(Problem(what, engine.source, do="describe it there: `client:`"))
    found = target_of(deployment, target)
    ports = wanted.wish.inventory.monitoring.exporter_ports
    return Bench(deployment, engine, engine.client, found, workload, sla, method, ports=ports, **more)


def measurement(
    bench: Bench, wanted: Wanted, about: RunRecord, points: Sequence[Measured], search: Found | None = None
) -> Measurement:
    """What was measured, with all that it was measured under."""
    return measurement_of(
        wanted,
        about,
        target=bench.target,
        workload=bench.workload,
        sla=bench.sla,
        method=bench.method,
        points=points,
        seed=bench.seed,
        repeats=bench.repeats,
        search=search,
    )


def refuse_silent(fleet: Hands, bench: Bench) -> None:
    """LauncherError where the target does not answer the client's host: each request would fail, and the
    client would end well all the same."""
    host, url = bench.target.host, bench.target.url
    alive = Probe("http", ("GET", url + MODELS, "", (), 10))
    answer = answers_of(fleet, {host: (alive,)})[host][alive]
    told = answer if isinstance(answer, Unknown) else answer.get("error") or answer.get("status")
    if told != 200:
        what = f"{bench.target.name} does not answer at {url}"
        raise LauncherError(Problem(what, host, f"asked for its models: {told}", "dsv32-launch status"))


def ladder(fleet: Hands, bench: Bench, record: Record) -> tuple[Measured, ...]:
    """Every point of the workload, up to an interruption."""
    points = points_of(bench.workload, bench.method)
    return tuple(measure(fleet, bench, p, record) for p in points if not record.interrupted())


def measure(fleet: Hands, bench: Bench, point: Point, record: Record) -> Measured:
    """The runs at a point, and what they say. LauncherError where the client itself fails.

    Until all of them are told, each can be picked up by whoever asks for the same point.
    """
    results: list[Result] = []
    for seed in range(bench.seed, bench.seed + bench.repeats):
        if not (results and record.interrupted()):
            results.append(run(fleet, bench, point, seed, record))
    measured = judge(
        bench.workload, bench.sla, bench.method, target=bench.target, point=point, results=results
    )
    verdicts = (f"{j.verdict} {j.limit}" for j in measured.judgements)
    for text in (*verdicts, *measured.doubts, *measured.notes):
        record.listener(Event("finding", text, subject=str(point)))
    record.told(measured)
    if not record.interrupted():
        taken(fleet, bench, point, [r.seed for r in results], record)
    return measured


def search(fleet: Hands, bench: Bench, axis: Axis, *, start: float, record: Record) -> Searched:
    """The highest value of the axis that keeps the service level, by runs long enough for a verdict."""
    bench = replace(bench, workload=long_enough(bench.workload, bench.sla, bench.method))
    measured: list[Measured] = []
    tried: list[Tried] = []
    while isinstance(asked := decide(tried, axis, start=start, method=bench.method), Ask):
        if record.interrupted():
            return Searched(axis, tuple(measured), so_far(tried))
        times = bench.method.confirm_times if asked.confirms else 1
        point = at(bench.workload, bench.method, axis=axis, value=asked.value, times=times)
        measured.append(measure(fleet, bench, point, record))
        tried.append(Tried(asked.value, measured[-1].verdict, asked.confirms))
    return Searched(axis, tuple(measured), asked)
