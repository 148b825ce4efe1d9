"""configs/performance and configs/points → Performance, Points; knows no model of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from launcher.load.collect import Collector
from launcher.load.data import Data
from launcher.load.schema import fill
from launcher.model.performance import Performance, Point
from launcher.model.problem import Problem


def read_performance(hardware: str, data: Data) -> Performance | None:
    """The constants of a hardware; None where nobody has measured it. InputError where the file is wrong."""
    path = data.find(f"configs/performance/{hardware}.yaml")
    if path is None:
        return None
    document = data.document(path)
    return fill(Performance, document.values, place=document.place, given={"name": hardware})


def read_points(data: Data) -> Mapping[str, Point]:
    """Every published point by its name. InputError with all that is wrong in their files."""
    problems = Collector()
    found: dict[str, Point] = {}
    for name in data.names("configs/points", holding=".yaml"):
        points = problems.attempt(partial(_points, name, data)) or {}
        problems.keep(
            Problem(f"point `{key}` is also at {found[key].source}", where=points[key].source, do="rename it")
            for key in found.keys() & points.keys()
        )
        found |= points
    problems.raise_any()
    return found


def _points(name: str, data: Data) -> dict[str, Point]:
    path = data.find(f"configs/points/{name}.yaml")
    assert path is not None, "names() lists what find() finds"
    document = data.document(path)
    return fill(dict[str, Point], document.values, place=document.place)
