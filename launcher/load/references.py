"""configs/references and configs/points → References: all that was published."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from launcher.load.collect import Collector
from launcher.load.data import Data
from launcher.load.points import read_points
from launcher.load.schema import fill
from launcher.model.performance import Point
from launcher.model.problem import Problem
from launcher.model.reference import Reference

FOLDER = "configs/references"


def read_references(data: Data) -> Mapping[str, Reference]:
    """Each published row by its name; points of the model are rows, too. InputError with all Problems."""
    problems = Collector()
    found = {name: reference_of(point) for name, point in read_points(data).items()}
    for name in data.names(FOLDER, holding=".yaml"):
        rows = problems.attempt(partial(_rows, name, data)) or {}
        problems.keep(
            Problem(f"row `{key}` is also at {found[key].source}", where=rows[key].source, do="rename it")
            for key in found.keys() & rows.keys()
        )
        found |= rows
    problems.raise_any()
    return found


def reference_of(point: Point) -> Reference:
    """A point of the speed model as a row."""
    gpus = point.tensor_parallel * point.data_parallel
    hosts = f"{point.hosts} host{'s' if point.hosts > 1 else ''}"
    shape = f"{hosts}, TP{point.tensor_parallel} × DP{point.data_parallel}, {gpus} GPUs"
    counts = {"prefill": point.prefill_instances, "decode": point.decode_instances}
    statistics = {"ttft_ms": point.ttft_of}
    return Reference(
        about=point.about,
        known_from=point.known_from,
        figures={f"{name} {statistics.get(name, 'mean')}": v for name, v in point.measured.items()},
        model=point.model,
        hardware=point.hardware,
        engine=point.engine,
        pools={pool: f"{count} × ({shape})" for pool, count in counts.items() if count},
        gpus=gpus * (point.prefill_instances + point.decode_instances),
        input_tokens=point.input_tokens,
        output_tokens=point.output_tokens,
        concurrency=point.concurrency,
        rate=point.rate,
        source=point.source,
    )


def _rows(name: str, data: Data) -> dict[str, Reference]:
    path = data.find(f"{FOLDER}/{name}.yaml")
    assert path is not None, "names() lists what find() finds"
    document = data.document(path)
    return fill(dict[str, Reference], document.values, place=document.place)
