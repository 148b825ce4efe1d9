"""A cgroup of its own for each host, in cgroup v2 and beside v1; knows nothing of what runs in them."""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path

from launcher.model.problem import LauncherError, Problem
from launcher.sandbox import programs

ROOT = Path("/sys/fs/cgroup")


def hierarchies() -> tuple[Path, ...]:
    """Where hosts get a cgroup: v2, and where v1 is mounted too, its systemd and cpuacct hierarchies."""
    v2: list[Path] = []
    v1: list[Path] = []
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, point, kind, options = line.split()[:4]
        if not Path(point).is_relative_to(ROOT):
            continue
        if kind == "cgroup2":
            v2.append(Path(point))
        elif kind == "cgroup" and {"name=systemd", "cpuacct"} & set(options.split(",")):
            v1.append(Path(point))
    return (ROOT,) if ROOT in v2 else (*v2[:1], *v1)


def has_v2() -> bool:
    """Whether this machine has cgroup v2 mounted; v1 alone cannot freeze and kill as we need it."""
    return any((folder / "cgroup.controllers").exists() for folder in hierarchies())


def folders(name: str) -> tuple[Path, ...]:
    """The folder of a cgroup in each hierarchy."""
    return tuple(folder / name for folder in hierarchies())


def make(name: str) -> tuple[Path, ...]:
    """Make a cgroup in each hierarchy."""
    made = folders(name)
    for folder in made:
        folder.mkdir(parents=True, exist_ok=True)
    return made


def freeze(name: str, on: bool) -> None:
    """Stop or let go every process in a cgroup."""
    for folder in _present(name):
        programs.write_setting(folder / "cgroup.freeze", "1" if on else "0")


def is_frozen(name: str) -> bool:
    """Whether the cgroup's processes are stopped."""
    return any(programs.read(folder / "cgroup.freeze").strip() == "1" for folder in _present(name))


def kill(name: str) -> None:
    """SIGKILL every process in a cgroup and below it."""
    for folder in _present(name):
        programs.write_setting(folder / "cgroup.kill", "1")


def cpu_seconds(name: str) -> float:
    """Processor time that a cgroup's processes have used."""
    for folder in reversed(_present(name)):  # v1's own accounting also works where v2 has no controllers
        if nanoseconds := programs.read(folder / "cpuacct.usage"):
            return int(nanoseconds) / 1e9
        if found := re.search(r"usage_usec (\d+)", programs.read(folder / "cpu.stat")):
            return int(found[1]) / 1e6
    return 0.0


def remove(name: str, *, within_s: float = 3) -> None:
    """Remove a cgroup whose processes are ending; LauncherError if some stay."""
    until = time.monotonic() + within_s
    while left := _present(name):
        for folder in left:
            for inner, _, _ in os.walk(folder, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(inner)
        if time.monotonic() > until:
            raise LauncherError(Problem("processes do not end", where=", ".join(map(str, left))))
        time.sleep(0.02)


def _present(name: str) -> tuple[Path, ...]:
    return tuple(folder for folder in folders(name) if folder.exists())
