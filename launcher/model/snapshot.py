"""Snapshot: every option, key of JSON and variable that a release of vLLM accepts, by its own account."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from launcher.model.values import Json


@dataclass(frozen=True, slots=True)
class Option:
    """One long option of `vllm serve`, or one key of an option that takes JSON."""

    default: Json = None
    """As the parser has it; None also where it is decided later."""
    choices: tuple[str, ...] = ()
    """All values it takes; empty: not a matter of choice. Those in capitals may be written small."""
    switch: bool = False
    """true or false. An option stands without a value then, and its `--no-` form is false."""
    one_way: bool = False
    """A switch without a `--no-` form: it can be switched on alone."""
    words: str = ""
    """How many words it takes: empty one (a switch none), `?` none or one, `+` one or more, `*` any."""
    short: str = ""
    """`dp` of `-dp`."""
    same_as: str = ""
    """The option of which this is another name, and which holds all else about it; `no-enable-x`: this one is
    a switch that sets enable-x to false."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """configs/engines/<engine>.json, written by scripts/snapshot-flags from the real release."""

    version: str
    options: Mapping[str, Option]
    """By name without dashes; `--no-` forms are not listed apart."""
    keys: Mapping[str, Mapping[str, Option]] = field(default_factory=dict)
    """Option that takes JSON → the keys that the release's dataclass has; nested ones dotted. An option that
    is not here takes any keys, and so does a key below which there are none."""
    variables: tuple[str, ...] = ()
    """Every variable of vllm.envs."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Current flag → its spelling here, where that is another one: `renamed` of the engine's file."""
    source: str = ""
    """The file."""
