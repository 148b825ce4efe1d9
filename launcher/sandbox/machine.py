"""What hosts need changed on this machine, and setting it back with the last sandbox; knows no host."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from launcher.sandbox import cgroups, lock, programs

# every systemd takes several inotify instances, every pair of hosts two rows of the one table of neighbours
LIMITS: Mapping[str, int] = {
    "fs/inotify/max_user_instances": 4096,
    "fs/inotify/max_user_watches": 262_144,
    "net/ipv4/neigh/default/gc_thresh3": 16_384,
    "net/ipv4/neigh/default/gc_thresh2": 8192,
}
SYSCTLS = Path("/proc/sys")
# one for all sandboxes, gone with a reboot, as what it remembers
MEMORY = Path("/run/dsv32-sandbox.json")
LOCK = Path("/run/dsv32-sandbox-lock")
CGROUP_MOUNT = "mounted cgroup"


@contextlib.contextmanager
def held(say: Callable[[str], None]) -> Iterator[None]:
    """Hold this machine against other sandboxes that come or go; a killed command lets go."""
    with lock.held(LOCK, wait=partial(say, "waiting for another sandbox")):
        yield


def prepare() -> None:
    """Raise limits and mount cgroup v2, where necessary; the first sandbox remembers how it was."""
    before = {key: _limit(key) for key in LIMITS}
    to_raise = {key: value for key, value in before.items() if 0 < value < LIMITS[key]}
    mount = not cgroups.has_v2()
    if to_raise or mount:
        _remember({**to_raise, CGROUP_MOUNT: mount})
    for key in to_raise:
        programs.write_setting(SYSCTLS / key, str(LIMITS[key]))
    if mount:
        programs.run("mount", "-t", "cgroup2", "cgroup2", str(cgroups.ROOT))


def set_back() -> None:
    """Set everything back, unless another sandbox is up."""
    if any(True for folder in cgroups.hierarchies() for _ in folder.glob("dsv32-*")):
        return
    before = json.loads(programs.read(MEMORY) or "{}")
    for key in LIMITS.keys() & before.keys():
        programs.write_setting(SYSCTLS / key, str(before[key]))
    if before.get(CGROUP_MOUNT):
        programs.attempt("umount", str(cgroups.ROOT))
    for path in MEMORY.parent.glob(f"{MEMORY.stem}.*"):  # also what a killed command did not finish
        path.unlink(missing_ok=True)


def _remember(before: Mapping[str, int | bool]) -> None:
    """Write the memory, whole or not at all, unless a sandbox before us has."""
    new = MEMORY.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(before))
    with contextlib.suppress(FileExistsError):
        os.link(new, MEMORY)
    new.unlink()


def _limit(key: str) -> int:
    return int((programs.read(SYSCTLS / key).split() or ["0"])[0])
