"""A name of a file in configs/ → what that file holds; knows which folder holds which noun."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from launcher.load.data import Data, unknown
from launcher.load.document import Document
from launcher.load.schema import filled
from launcher.model.experiment import Experiment
from launcher.model.problem import InputError
from launcher.model.profile import Engine, Hardware, Layout, Model, Platform, RouterKind, Stack
from launcher.model.sla import Sla, Workload
from launcher.model.tune import Records, Tune

T = TypeVar("T")

FOLDERS: Mapping[type[Any], str] = {
    Engine: "engines",
    Experiment: "experiments",
    Hardware: "hardware",
    Layout: "layouts",
    Model: "models",
    Platform: "platforms",
    Records: "records",
    RouterKind: "routers",
    Sla: "slas",
    Stack: "stacks",
    Tune: "tunes",
    Workload: "workloads",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """A name of a file in configs/, and the line that chose it."""

    name: str
    where: str


def names(wanted: type[Any], data: Data) -> list[str]:
    """What there is to choose from."""
    return data.names(f"configs/{FOLDERS[wanted]}", holding=".yaml")


def open_chosen(wanted: type[Any], choice: Choice, data: Data) -> Document:
    """The file by a name that must be among those there: a name is never a path. InputError if it is not."""
    known = names(wanted, data)
    path = data.find(f"configs/{FOLDERS[wanted]}/{choice.name}.yaml") if choice.name in known else None
    if path is None:
        word = FOLDERS[wanted].removesuffix("s")
        raise InputError(unknown(word, choice.name, where=choice.where, known=known))
    return data.document(path)


def read(wanted: type[T], choice: Choice, data: Data) -> T:
    """A Hardware, Layout, Model, Platform, RouterKind or Workload. InputError with all that does not
    fit its type."""
    document = open_chosen(wanted, choice, data)
    return filled(wanted, document, name=choice.name)
