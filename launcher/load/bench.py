"""configs/bench.yaml → Method; knows no benchmark."""

from __future__ import annotations

from launcher.load.data import Data
from launcher.load.schema import fill
from launcher.model.bench import Method
from launcher.model.problem import InputError, Problem

FILE = "configs/bench.yaml"


def read_method(data: Data) -> Method:
    """How benchmarks are measured and judged. InputError where the file is not as it should be."""
    path = data.find(FILE)
    if path is None:
        raise InputError(Problem("no such file", where=FILE, do="restore it: it comes with this program"))
    document = data.document(path)
    return fill(Method, document.values, place=document.place)
