"""Role, RoleStep, Step, STAGES: a folder of roles/ as read, and its steps as expanded; knows no kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from launcher.model.inventory import PoolName
from launcher.model.profile import Setting

Stage: TypeAlias = Literal["host", "runtime", "weights", "engine", "router"]
STAGES: tuple[Stage, ...] = ("host", "runtime", "weights", "engine", "router")
Each: TypeAlias = Literal["host", "process", "router", "front", "address", "monitored", "monitor"]


@dataclass(frozen=True, slots=True)
class RoleStep:
    """One step of a role as written: its parameters are raw, with templates in them."""

    name: str
    kind: str
    each: Each
    """host: once; process: once for each engine process of the host; router: once for each router of it,
    and of kind `turns` once for both; front: once for its front; address: so, where fronts share one;
    monitored: once, where the inventory has `monitoring`; monitor: once for the host that it names."""
    restart_on: tuple[str, ...]
    """Steps of this role whose content makes the unit restart when it changes (kind `unit` only)."""
    params: Mapping[str, Setting]
    source: str
    stays: bool = False
    """Not taken away with its role: it may have been there before, or others need it."""


@dataclass(frozen=True, slots=True)
class Role:
    """How one thing is made true on a host."""

    name: str
    about: str
    stage: Stage
    pools: tuple[PoolName, ...]
    """Empty: all hosts."""
    needs: tuple[str, ...]
    halts: bool
    """Its changes are made only while no engine runs on the host."""
    steps: tuple[RoleStep, ...]
    templates: Mapping[str, str]
    """File name → text, of templates/."""
    files: Mapping[str, bytes]
    """File name → content, of files/."""
    source: str


@dataclass(frozen=True, slots=True)
class Step:
    """A piece of desired state on one host."""

    id: str
    """`role/step`, or `role/step[decode-0]` where it belongs to a process."""
    role: str
    stage: Stage
    kind: str
    host: str
    want: Any
    """The kind's own parameter dataclass, filled."""
    instance: str
    """The engine instance whose unit this is; empty for all other steps."""
    source: str
    """`file:line` of the step in its role."""
    stays: bool = False
    """Not taken away with its role."""
