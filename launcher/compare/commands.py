"""Command lines and variables of two deployments: words that came, went or changed, by process group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from launcher.explain.fact import shown
from launcher.model.deployment import RouterProcess
from launcher.model.launch import Launch
from launcher.model.profile import RouterKind
from launcher.model.values import Json


@dataclass(frozen=True, slots=True)
class Word:
    """A flag, a key of its JSON (dotted) or a variable; empty: not written on that side."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Group:
    """Processes whose lines differ in the same words."""

    processes: tuple[str, ...]
    """`decode-0 on gpu05`."""
    words: tuple[Word, ...]


Lines: TypeAlias = Mapping[str, Mapping[str, str]]
"""Process → its words, name by value."""


def command_changes(before: Lines, after: Lines) -> tuple[Group, ...]:
    """Groups whose command lines are others, in the order of their processes; a process that only one of the
    two deployments has differs in all its words."""
    groups: dict[tuple[Word, ...], list[str]] = {}
    for name in dict.fromkeys((*before, *after)):
        words = tuple(_changed(before.get(name, {}), after.get(name, {})))
        if words:
            groups.setdefault(words, []).append(name)
    return tuple(Group(tuple(names), words) for words, names in groups.items())


def lines_of(launches: Iterable[Launch], routers: Iterable[RouterProcess], kind: RouterKind | None) -> Lines:
    """Engines' lines, and routers' without their workers: these follow from the engines."""
    workers = {kind.prefill_flag, kind.decode_flag} if kind else set()
    engines = {launch.name: dict(_words(launch)) for launch in launches}
    own = {
        f"router {r.slot} on {r.host}": {
            a.flag: a.value or "true" for a in r.arguments if a.flag not in workers
        }
        | {name: shown(setting.value) for name, setting in r.environment.items()}
        for r in routers
    }
    return {**engines, **own}


def _changed(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Word]:
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            yield Word(name, old.get(name, ""), new.get(name, ""))


def _words(launch: Launch) -> Iterator[tuple[str, str]]:
    for name, setting in launch.flags.items():
        yield from _leaves(f"--{name}", setting.value)
    yield from ((name, shown(setting.value)) for name, setting in launch.variables.items())


def _leaves(name: str, value: Json) -> Iterator[tuple[str, str]]:
    """JSON key by key: a line of ten keys of which one differs is hard to read."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(f"{name}.{key}", inner)
    else:
        yield name, shown(value)
