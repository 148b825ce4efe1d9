"""configs/bench.yaml and configs/telemetry.yaml → Method, Telemetry; knows no benchmark."""

from __future__ import annotations

from typing import TypeVar

from launcher.load.data import Data
from launcher.load.schema import filled
from launcher.model.bench import Method
from launcher.model.problem import InputError, Problem
from launcher.model.telemetry import Telemetry

FILE = "configs/bench.yaml"
TELEMETRY = "configs/telemetry.yaml"
T = TypeVar("T")


def read_method(data: Data) -> Method:
    """How benchmarks are measured and judged. InputError where the file is not as it should be."""
    return _read(Method, FILE, data)


def read_telemetry(data: Data) -> Telemetry:
    """What exporters are asked for meanwhile. InputError where the file is not as it should be."""
    return _read(Telemetry, TELEMETRY, data)


def _read(wanted: type[T], file: str, data: Data) -> T:
    path = data.find(file)
    if path is None:
        raise InputError(Problem("no such file", where=file, do="restore it: it comes with this program"))
    document = data.document(path)
    return filled(wanted, document)
