"""Snapshot: every option, key of JSON and variable that a release of vLLM accepts, by its own account."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from launcher.model.profile import Json


@dataclass(frozen=True, slots=True)
class Option:
    """One long option of `vllm serve`."""

    default: Json = None
    """As the parser has it; None also where it is decided later."""
    choices: tuple[str, ...] = ()
    switch: bool = False
    """Takes no value, and has a `--no-` form where it is a boolean."""
    short: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """configs/engines/<engine>.json, written by scripts/snapshot-flags from the real release."""

    version: str
    options: Mapping[str, Option]
    """By name without dashes; `--no-` forms are not listed apart."""
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Option that takes JSON → the keys that the release's dataclass has."""
    variables: tuple[str, ...] = ()
    """Every variable of vllm.envs."""
