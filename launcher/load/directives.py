"""configs/directives.yaml → directive of a unit → what systemd does with it."""

from __future__ import annotations

from launcher.load.data import Data
from launcher.load.schema import filled
from launcher.model.problem import InputError, Problem
from launcher.model.profile import Setting, Settings

FILE = "configs/directives.yaml"


def read_directives(data: Data) -> Settings:
    """All that are told of. InputError where the file is not as it should be."""
    path = data.find(FILE)
    if path is None:
        raise InputError(Problem("no such file", where=FILE, do="restore it: it comes with this program"))
    document = data.document(path)
    return filled(dict[str, Setting], document)
