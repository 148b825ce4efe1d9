"""configs/ → Profile, with the source of each setting; knows no hosts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import partial
from typing import TypeVar

from launcher.load.choice import Choice, open_chosen, read
from launcher.load.collect import Collector
from launcher.load.data import Data, unknown
from launcher.load.document import Document, Location
from launcher.load.schema import fill
from launcher.load.snapshot import parse_snapshot
from launcher.model.problem import InputError, Problem
from launcher.model.profile import Engine, Hardware, Layout, Model, Profile, RouterKind, Stack
from launcher.model.snapshot import Snapshot

T = TypeVar("T")


def read_stack(choice: Choice, data: Data, problems: Collector) -> tuple[Stack | None, Mapping[str, Choice]]:
    """A stack whose roles and lock file are there, and the engine and router that it chooses."""
    document = problems.attempt(lambda: open_chosen(Stack, choice, data))
    if document is None:
        return None, {}
    digest = problems.attempt(lambda: _lock_digest(document, data))
    given: dict[str, object] = {"name": choice.name, "lock_digest": digest or ""}
    stack = problems.attempt(lambda: fill(Stack, document.values, place=document.place, given=given))
    if stack is None:
        return None, {}
    if stack.engine and not _is_version(stack.engine_version):
        what = f"`engine_version` is `{stack.engine_version}`, expected a version"
        where = document.place(("engine_version",))
        problems.keep([Problem(what, where=where, do="write the engine's release, like 0.32.0")])
    known = data.names("roles", holding="role.yaml")
    for index, role in enumerate(stack.roles):
        if role not in known:
            where = document.place(("roles", index))
            problems.keep([unknown("role", role, where=where, known=known)])
    chosen = {"engine": stack.engine, "router": stack.router}
    return stack, {kind: Choice(name, document.place((kind,))) for kind, name in chosen.items() if name}


def read_profile(choices: Mapping[str, Choice], stack: Stack, data: Data, problems: Collector) -> Profile:
    """The files chosen by an inventory's `hardware`, `model` and `layout`, and by its stack."""

    def chosen(kind: str, wanted: type[T]) -> T | None:
        return problems.attempt(partial(read, wanted, choices[kind], data)) if kind in choices else None

    engine = choices.get("engine")
    return Profile(
        stack,
        hardware=chosen("hardware", Hardware),
        model=chosen("model", Model),
        engine=problems.attempt(partial(_read_engine, engine, data)) if engine else None,
        layout=chosen("layout", Layout),
        router=chosen("router", RouterKind),
    )


def _read_engine(choice: Choice, data: Data) -> Engine:
    """An engine's file and its snapshot; what others will compile must be compilable."""
    document = open_chosen(Engine, choice, data)
    given = {"name": choice.name, "snapshot": _snapshot(choice.name, data)}
    engine = fill(Engine, document.values, place=document.place, given=given)
    patterns: dict[Location, str] = {("phases", i, "pattern"): p.pattern for i, p in enumerate(engine.phases)}
    for word, texts in (("fatal", engine.fatal), ("ignore", engine.ignore)):
        patterns |= {(word, i): text for i, text in enumerate(texts)}
    problems = Collector()
    for location, pattern in patterns.items():
        try:
            re.compile(pattern)
        except re.error as error:
            what = f"pattern `{pattern}` is no regular expression: {error}"
            problems.keep([Problem(what, where=document.place(location), do="correct it")])
    if not _is_range(engine.versions):
        what = f"`versions` is `{engine.versions}`, expected a range of versions"
        problems.keep([Problem(what, where=document.place(("versions",)), do='write it like ">=0.32,<0.33"')])
    problems.raise_any()
    return engine


def _is_version(text: str) -> bool:
    # late, as below: hosts wait to be connected until everything is read
    from packaging.version import InvalidVersion, Version

    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _is_range(text: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return False
    return True


def _snapshot(engine: str, data: Data) -> Snapshot | None:
    """What the engine's release accepts, where a snapshot of it is there."""
    path = data.find(f"configs/engines/{engine}.json")
    return parse_snapshot(data.text(path), data.shown(path)) if path else None


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
