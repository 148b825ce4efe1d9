"""SourceBuild: a wheel that no index has, and what it is made of; knows no host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Ge


@dataclass(frozen=True, slots=True)
class SourceBuild:
    """How a stack's package is built: from one commit, in the stack's own environment, without a network.

    Its wheel is pinned in the stack's lock as any other: one that is built anew and differs is not taken.
    """

    version: str
    """As the wheel's name has it."""
    git: str
    """Where the source is fetched from, by the machine that runs `stack build`."""
    commit: str
    """All 40 digits: they are the source's checksum."""
    tools: tuple[str, ...] = ()
    """Requirements of the build alone, laid over the stack's pins: build tools, headers."""
    tools_lock: str = ""
    """File in configs/stacks/ with their pins; `stack lock` writes it."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the build; `{environment}` in a value is the folder of the environment it is built in."""
    within_s: Annotated[int, Ge(1)] = 7200
