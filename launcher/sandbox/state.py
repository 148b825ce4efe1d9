"""What must survive between two commands: one small JSON file for the sandbox and one for each host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from launcher.sandbox import programs
from launcher.sandbox.processes import ProcessId


@dataclass(frozen=True, slots=True)
class SandboxState:
    """How the hosts that exist were made."""

    name: str = ""
    subnet: str = ""
    devices: str = ""
    """Folder of the GPUs' device files; empty: hosts without GPUs."""


@dataclass(frozen=True, slots=True)
class HostState:
    """Processes of the machine that belong to a host."""

    keeper: ProcessId | None = None
    """The process above systemd-nspawn."""
    relay: ProcessId | None = None
    """The process that delays its frames, where the kernel cannot."""
    delay: str = ""
    """The delay in force, in words."""


def load_sandbox(directory: Path) -> SandboxState:
    """The sandbox's state; the default where there is none."""
    text = programs.read(directory / "state.json")
    return SandboxState(**json.loads(text)) if text else SandboxState()


def save_sandbox(directory: Path, state: SandboxState) -> None:
    """Keep the sandbox's state."""
    programs.write(directory / "state.json", json.dumps(asdict(state)))


def load_host(folder: Path) -> HostState:
    """A host's state; the default where there is none."""
    text = programs.read(folder / "state.json")
    if not text:
        return HostState()
    raw = json.loads(text)
    return HostState(_process(raw["keeper"]), _process(raw["relay"]), raw["delay"])


def save_host(folder: Path, state: HostState) -> None:
    """Keep a host's state."""
    programs.write(folder / "state.json", json.dumps(asdict(state)))


def _process(raw: Mapping[str, str | int] | None) -> ProcessId | None:
    return ProcessId(int(raw["pid"]), int(raw["started"]), str(raw["boot"])) if raw else None
