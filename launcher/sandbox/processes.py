"""Processes that outlive the command that started them; knows them by start time, as pids are reused."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from launcher.sandbox import programs

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One process for good: a pid is used again, a pid with its start time and boot is not."""

    pid: int
    started: int
    """Clock ticks since the machine's boot."""
    boot: str


def identify(pid: int) -> ProcessId | None:
    """The process that has this pid now; None for none and for one that has ended but is not yet reaped."""
    stat = programs.read(Path(f"/proc/{pid}/stat"))
    if not stat:
        return None
    fields = stat[stat.rindex(")") + 2 :].split()
    if fields[0] in "ZX":
        return None
    return ProcessId(pid, int(fields[19]), programs.read(BOOT_ID).strip())


def is_alive(process: ProcessId | None) -> bool:
    """Whether that very process runs."""
    return process is not None and identify(process.pid) == process


def children(pid: int) -> tuple[int, ...]:
    """Pids of a process's children."""
    return tuple(int(word) for word in programs.read(Path(f"/proc/{pid}/task/{pid}/children")).split())


def spawn(words: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> ProcessId | None:
    """Start a session of its own that is no child of ours; its output is appended to `log`."""
    settings = [f"{name}={value}" for name, value in environment.items()]
    shell = 'log=$1; shift; "$@" </dev/null >>"$log" 2>&1 & echo $!'
    # a background child of sh leads no process group, so setsid execs in place and the pid stays
    command = ["sh", "-c", shell, "sh", str(log), "setsid", "env", "-i", *settings, *words]
    # not `programs.run`: it would inherit the lock
    return identify(int(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


def end(process: ProcessId | None, *, how: int = signal.SIGKILL, within_s: float = 5) -> None:
    """Signal that very process and wait until it is gone, at most `within_s`."""
    if process is None or not is_alive(process):
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, how)
    await_end(process, within_s=within_s)


def await_end(process: ProcessId | None, *, within_s: float) -> bool:
    """Wait for a process to go away; whether it did."""
    until = time.monotonic() + within_s
    while is_alive(process):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
