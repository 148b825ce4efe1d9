"""Command lines and variables of two deployments: words that came, went or changed, by process group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from launcher.explain.fact import shown
from launcher.model.launch import Launch
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


def command_changes(before: Iterable[Launch], after: Iterable[Launch]) -> tuple[Group, ...]:
    """Groups whose command lines are others, in the order of their processes; a process that only one of the
    two deployments has differs in all its words."""
    old, new = ({launch.name: dict(_words(launch)) for launch in side} for side in (before, after))
    groups: dict[tuple[Word, ...], list[str]] = {}
    for name in dict.fromkeys((*old, *new)):
        words = tuple(_changed(old.get(name, {}), new.get(name, {})))
        if words:
            groups.setdefault(words, []).append(name)
    return tuple(Group(tuple(names), words) for words, names in groups.items())


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
