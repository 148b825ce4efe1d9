"""configs/ → Profile, with the source of each setting; knows no hosts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from launcher.load.collect import Collector
from launcher.load.data import Data, unknown
from launcher.load.document import Document
from launcher.load.schema import fill
from launcher.model.problem import InputError, Problem
from launcher.model.profile import Engine, Hardware, Layout, Model, Profile, RouterKind, Stack

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Choice:
    """A name of a file in configs/, and the line that chose it."""

    name: str
    where: str


def read_stack(choice: Choice, data: Data, problems: Collector) -> tuple[Stack | None, Mapping[str, Choice]]:
    """A stack whose roles and lock file are there, and the engine and router that it chooses."""
    document = problems.attempt(lambda: _open("stack", choice, data))
    if document is None:
        return None, {}
    digest = problems.attempt(lambda: _lock_digest(document, data))
    given: dict[str, object] = {"name": choice.name, "lock_digest": digest or ""}
    stack = problems.attempt(lambda: fill(Stack, document.values, place=document.place, given=given))
    if stack is None:
        return None, {}
    known = data.names("roles", holding="role.yaml")
    for index, role in enumerate(stack.roles):
        if role not in known:
            where = document.place(("roles", index))
            problems.keep([unknown("role", role, where=where, known=known)])
    chosen = {"engine": stack.engine, "router": stack.router}
    return stack, {kind: Choice(name, document.place((kind,))) for kind, name in chosen.items() if name}


def read_layout(choice: Choice, data: Data) -> Layout:
    """One layout by itself."""
    return _read("layout", choice, Layout, data)


def read_profile(choices: Mapping[str, Choice], stack: Stack, data: Data, problems: Collector) -> Profile:
    """The files chosen by an inventory's `hardware`, `model` and `layout`, and by its stack."""

    def chosen(kind: str, wanted: type[T]) -> T | None:
        choice = choices.get(kind)
        return problems.attempt(lambda: _read(kind, choice, wanted, data)) if choice else None

    return Profile(
        stack,
        hardware=chosen("hardware", Hardware),
        model=chosen("model", Model),
        engine=chosen("engine", Engine),
        layout=chosen("layout", Layout),
        router=chosen("router", RouterKind),
    )


def _folder(kind: str) -> str:
    return f"configs/{kind}" if kind == "hardware" else f"configs/{kind}s"


def _open(kind: str, choice: Choice, data: Data) -> Document:
    """One file of configs/, by a name that must be among those there: a name is never a path."""
    known = data.names(_folder(kind), holding=".yaml")
    path = data.find(f"{_folder(kind)}/{choice.name}.yaml") if choice.name in known else None
    if path is None:
        raise InputError(unknown(kind, choice.name, where=choice.where, known=known))
    return data.document(path)


def _read(kind: str, choice: Choice, wanted: type[T], data: Data) -> T:
    document = _open(kind, choice, data)
    given: dict[str, object] = {"name": choice.name}
    if wanted is Engine:
        given["options"] = _options(choice.name, data)
    return fill(wanted, document.values, place=document.place, given=given)


def _options(engine: str, data: Data) -> frozenset[str]:
    """Every long option in the engine's snapshot, one a line; none if there is no snapshot."""
    path = data.find(f"configs/engines/{engine}.flags")
    lines = data.text(path).split("\n") if path else []
    return frozenset(line.strip() for line in lines if line.startswith("--"))


def _lock_digest(document: Document, data: Data) -> str:
    """sha256 of the stack's lock file; empty where it names none."""
    lock = document.values.get("lock") if isinstance(document.values, dict) else None
    if not isinstance(lock, str) or not lock:
        return ""
    path = data.find(f"configs/stacks/{lock}") if "/" not in lock else None
    if path is None:
        what = f"lock file `{lock}` is not in configs/stacks/"
        do = "write it: dsv32-launch stack lock"
        raise InputError(Problem(what, where=document.place(("lock",)), do=do))
    return hashlib.sha256(data.content(path)).hexdigest()
