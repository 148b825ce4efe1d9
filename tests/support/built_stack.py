"""A stack with one package that no index has: its repository, its pins, and the data that names both."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from engine_hosts import USUAL

TOOLS = ("setuptools", "uv")
WHEELS = USUAL / "gpfs/stacks/sandbox-cpu/wheels"


def git(folder: Path, *words: str) -> str:
    """What git says in that folder."""
    own = ["git", "-C", str(folder), "-c", "user.name=test", "-c", "user.email=test@localhost"]
    return subprocess.run([*own, *words], check=True, capture_output=True, text=True).stdout.strip()


def repository(folder: Path, files: Mapping[str, str]) -> Path:
    """A new repository with one commit."""
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def with_tools(wheels: Path) -> str:
    """Put what builds wheels into a stack's folder; its pins, or an empty text where it is not there."""
    found = [path for tool in TOOLS for path in WHEELS.glob(f"{tool}-*.whl")]
    if len(found) != len(TOOLS):
        return ""
    wheels.mkdir(parents=True)
    pins = ""
    for path in found:
        shutil.copy(path, wheels)
        name, version = path.name.split("-")[:2]
        pins += f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"
    return pins


def made_data(folder: Path, origin: Path, pins: str, *, python: str = "") -> Path:
    """A data folder with stack `x`: the pins, and version 1.0 of package `fast` out of that repository.

    `python`: the hosts' version; empty: this machine's.
    """
    stacks = folder / "configs/stacks"
    stacks.mkdir(parents=True, exist_ok=True)
    (stacks / "x.lock").write_text(pins)
    version = python or f"{sys.version_info[0]}.{sys.version_info[1]}"
    commit = git(origin, "rev-parse", "HEAD")
    (stacks / "x.yaml").write_text(
        f'about: A test.\nroles: [os-base]\npython: "{version}"\nlock: x.lock\nvariables: {{glibc: "2.36"}}\n'
        f'builds:\n  fast:\n    version: "1.0"\n    git: {origin}\n    commit: {commit}\n'
        '    environment: {ANSWER: "42", UNUSED: "{environment}/x"}\n'
    )
    return folder
