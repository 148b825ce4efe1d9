"""configs/ → Profile, with the source of each setting; knows no hosts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TypeVar

from launcher.load.choice import Choice, open_chosen, read
from launcher.load.collect import Collector
from launcher.load.data import Data, unknown
from launcher.load.document import Document
from launcher.load.engines import read_engine
from launcher.load.history import read_history
from launcher.load.schema import filled
from launcher.model.history import History
from launcher.model.problem import InputError, Problem
from launcher.model.profile import Hardware, Layout, Model, Platform, Profile, RouterKind, Stack

T = TypeVar("T")


def read_stack(choice: Choice, data: Data, problems: Collector) -> tuple[Stack | None, Mapping[str, Choice]]:
    """A stack whose roles and lock file are there, and the engine and router that it chooses."""
    document = problems.attempt(lambda: open_chosen(Stack, choice, data))
    if document is None:
        return None, {}
    digest = problems.attempt(lambda: _lock_digest(document, data))
    stack = problems.attempt(lambda: filled(Stack, document, name=choice.name, lock_digest=digest or ""))
    if stack is None:
        return None, {}
    if stack.engine and not _is_version(stack.engine_version):
        what = f"`engine_version` is `{stack.engine_version}`, expected a version"
        where = document.place(("engine_version",))
        problems.keep([Problem(what, where=where, do="write the engine's release, like 0.32.0")])
    problems.keep(_unknown_roles(stack.roles, document, data))
    chosen = {"engine": stack.engine, "router": stack.router}
    return stack, {kind: Choice(name, document.place((kind,))) for kind, name in chosen.items() if name}


def read_profile(choices: Mapping[str, Choice], stack: Stack, data: Data, problems: Collector) -> Profile:
    """The files chosen by an inventory's `hardware`, `model`, `layout` and `platform`, and by its stack."""

    def chosen(kind: str, wanted: type[T]) -> T | None:
        return problems.attempt(partial(read, wanted, choices[kind], data)) if kind in choices else None

    engine = choices.get("engine")
    history = problems.attempt(partial(read_history, data)) if engine else None
    return Profile(
        stack,
        hardware=chosen("hardware", Hardware),
        model=chosen("model", Model),
        engine=problems.attempt(partial(read_engine, engine, data)) if engine else None,
        layout=chosen("layout", Layout),
        router=chosen("router", RouterKind),
        platform=problems.attempt(partial(_platform, choices["platform"], data))
        if "platform" in choices
        else None,
        history=history or History({}, {}),
    )


def _platform(choice: Choice, data: Data) -> Platform:
    """A platform whose roles are there."""
    platform = read(Platform, choice, data)
    if wrong := tuple(_unknown_roles(platform.roles, open_chosen(Platform, choice, data), data)):
        raise InputError(*wrong)
    return platform


def _unknown_roles(roles: Iterable[str], document: Document, data: Data) -> Iterator[Problem]:
    known = data.names("roles", holding="role.yaml")
    for index, role in enumerate(roles):
        if role not in known:
            yield unknown("role", role, where=document.place(("roles", index)), known=known)


def _is_version(text: str) -> bool:
    # late: hosts wait to be connected until everything is read
    from packaging.version import InvalidVersion, Version

    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


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
