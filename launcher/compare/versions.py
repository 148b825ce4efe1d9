"""Two stacks: which versions differ, and what an engine runs with that its stack does not have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet

from launcher.model.profile import Companion, Profile, Stack

STACK_WORDS: Mapping[Companion, str] = {"driver": "driver_minimum"}
"""What a stack calls a companion of an engine, where it is another word."""
RANGE = re.compile(r"[<>=!~]")


@dataclass(frozen=True, slots=True)
class Version:
    """A thing of another version; empty: one of the two has it not."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Need:
    """What an engine runs with and its stack does not have."""

    name: str
    wanted: str
    found: str
    """Empty: the stack does not say."""
    source: str


def versions(before: Stack, after: Stack) -> tuple[Version, ...]:
    """Everything that stacks pin and that differs."""
    old, new = _pinned(before), _pinned(after)
    names = dict.fromkeys((*new, *old))
    pairs = (Version(name, old.get(name, ""), new.get(name, "")) for name in names)
    return tuple(pair for pair in pairs if pair.before != pair.after)


def needs(profile: Profile) -> Iterator[Need]:
    """What the engine's file asks for, and the stack pins otherwise or does not pin at all."""
    stack, engine = profile.stack, profile.engine
    for companion, wanted in (engine.companions if engine else {}).items():
        found = stack.variables.get(STACK_WORDS.get(companion, companion), "")
        if not (found and runs_with(wanted, found)):
            yield Need(companion, wanted, found, stack.source)
    if not stack.lock:
        yield Need("lock", "a file of hashed wheels", "", stack.source)


def runs_with(wanted: str, found: str) -> bool:
    """Is a version in a range, or a commit the one that is named?"""
    if RANGE.match(wanted):
        return SpecifierSet(wanted).contains(found, prereleases=True)
    return found.startswith(wanted) or wanted.startswith(found)


def _pinned(stack: Stack) -> dict[str, str]:
    packages = {name: version for name, version in stack.packages.items() if version}
    return {
        "engine": f"{stack.engine_version} ({stack.engine})" if stack.engine else "",
        "router": stack.router,
        "python": stack.python,
        **stack.variables,
        **packages,
        "lock": stack.lock_digest[:12],
        "roles": " ".join(stack.roles),
    }
