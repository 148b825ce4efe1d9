"""Fact, Topic: one thing that is so, and facts that belong together; knows not what they are about."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from launcher.model.values import Json

Kind: TypeAlias = Literal[
    "finding", "value", "default", "port", "does", "release", "why", "fix", "peer", "rule"
]
"""finding: what a rule says here; value: it is set; default: it is not; port: it is listened on;
does: what the program does with it; release: what is so in this one; why: the reason, or what follows;
fix: what to do; peer: who connects; rule: a rule of `lint` looks at it."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is so. The fields are the keys of `explain --json`."""

    kind: Kind
    name: str = ""
    """Of a setting as the release spells it, of a directive, of a port; a rule's id."""
    value: str = ""
    """Its value, or a sentence; of a rule fires, accepted, depends, open, quiet or `other release`."""
    of: tuple[str, ...] = ()
    """For which it is so: `decode-0 on gpu05`, hosts, units; empty: for all that the topic is about."""
    source: str = ""
    """`file:line` that says so."""
    about: str = ""
    """What it means, in a sentence."""
    severity: str = ""
    """Of a rule."""


@dataclass(frozen=True, slots=True)
class Topic:
    """Facts that belong together, what is asked first coming first."""

    title: str
    facts: tuple[Fact, ...]


def together(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Each different fact once, of all that it holds for; those of the same name after one another."""
    names: dict[tuple[Hashable, ...], dict[Fact, dict[str, None]]] = {}
    for fact in facts:
        alike = names.setdefault((fact.kind, fact.name), {})
        alike.setdefault(replace(fact, of=()), {}).update(dict.fromkeys(fact.of))
    return tuple(replace(f, of=tuple(of)) for alike in names.values() for f, of in alike.items())


def shown(value: Json) -> str:
    """A value as a command line has it: JSON compact, true and false small."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
