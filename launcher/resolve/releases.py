"""A setting or variable against the history: what comes later and what is gone; knows no layers."""

from __future__ import annotations

from collections.abc import Iterator

from launcher.load.schema import near
from launcher.model.history import Entry, History, known_in, release
from launcher.model.problem import Problem
from launcher.model.profile import Engine, Setting
from launcher.model.values import Json


def release_problems(
    name: str, setting: Setting, *, history: History, engine: Engine, version: str
) -> Iterator[Problem]:
    """A flag, a key of its JSON or a variable that is known, but not to this release."""
    for path in (name, *_keys(name, setting.value)):
        entry = history.entry(path)
        if entry is not None and not known_in(entry, version):
            yield _problem(path, entry, setting=setting, history=history, engine=engine, version=version)


def unknown_variable_problems(
    name: str, setting: Setting, *, history: History, engine: Engine
) -> Iterator[Problem]:
    """A variable of vLLM's own that no release knows. Nothing without a snapshot."""
    snapshot = engine.snapshot
    if not name.startswith("VLLM_") or snapshot is None or name in history.variables:
        return
    if name not in snapshot.variables:
        why = f"the variables of its release are listed in configs/engines/{engine.name}.json"
        do = near(name, snapshot.variables)
        yield Problem(f"{engine.name} has no variable {name}", where=setting.source, why=why, do=do)


def _keys(path: str, value: Json) -> Iterator[str]:
    """Every key within a value, dotted."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield f"{path}.{key}"
        yield from _keys(f"{path}.{key}", inner)


def _problem(
    path: str, entry: Entry, *, setting: Setting, history: History, engine: Engine, version: str
) -> Problem:
    what = f"{engine.name} does not know {path}"
    if release(version) < release(entry.since):
        do = "remove it, or choose a stack whose engine knows it"
        return Problem(f"{what}: it comes with {entry.since}", setting.source, entry.because, do)
    name = history.current(path)
    do = f"write `{name}`" if name != path else entry.instead or "remove it"
    when = f"it is gone since {entry.until}" if any(release(entry.until)) else "no release ever did"
    return Problem(f"{what}: {when}", setting.source, entry.because, do)
