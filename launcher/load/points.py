"""configs/performance and configs/points → Performance, Points; knows no model of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Protocol, TypeVar

from launcher.load.collect import Collector
from launcher.load.data import Data
from launcher.load.schema import filled
from launcher.model.performance import Performance, Point
from launcher.model.problem import Problem


class Row(Protocol):
    """Something that a file has by name, and where."""

    @property
    def source(self) -> str:
        """`file:line`."""


R = TypeVar("R", bound=Row)


def read_performance(hardware: str, data: Data) -> Performance | None:
    """The constants of a hardware; None where nobody has measured it. InputError where the file is wrong."""
    path = data.find(f"configs/performance/{hardware}.yaml")
    if path is None:
        return None
    document = data.document(path)
    return filled(Performance, document, name=hardware)


def read_points(data: Data) -> Mapping[str, Point]:
    """Every published point by its name. InputError with all that is wrong in their files."""
    return read_rows(dict[str, Point], "configs/points", data, word="point")


def read_rows(
    kind: type[dict[str, R]], folder: str, data: Data, *, word: str, known: Mapping[str, R] | None = None
) -> Mapping[str, R]:
    """What all files of a folder have by name, and what is `known` already. InputError with all that is wrong
    in the files, and with names that are there twice; `word`: what such a row is called."""
    problems = Collector()
    found = dict(known or {})
    for name in data.names(folder, holding=".yaml"):
        rows = problems.attempt(partial(_rows, kind, f"{folder}/{name}.yaml", data)) or {}
        problems.keep(
            Problem(f"{word} `{key}` is also at {found[key].source}", where=rows[key].source, do="rename it")
            for key in found.keys() & rows.keys()
        )
        found |= rows
    problems.raise_any()
    return found


def _rows(kind: type[dict[str, R]], file: str, data: Data) -> dict[str, R]:
    path = data.find(file)
    assert path is not None, "names() lists what find() finds"
    document = data.document(path)
    return filled(kind, document)
