"""Programs run on this machine, and small files read and written; knows nothing of hosts."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from launcher.model.problem import LauncherError, Problem

Done: TypeAlias = "subprocess.CompletedProcess[str]"


def attempt(
    *words: str,
    stdin: str = "",
    within_s: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> Done:
    """Run a program to its end, whatever its exit status; LauncherError when that takes longer.

    `environment`: None for ours.
    """
    try:
        return subprocess.run(
            words,
            capture_output=True,
            text=True,
            input=stdin,
            timeout=within_s,
            env=environment,
            close_fds=False,  # for the lock alone: Python makes all else not inheritable
        )
    except subprocess.TimeoutExpired:
        what = f"`{shlex.join(words)}` did not end within {within_s} s"
        raise LauncherError(Problem(what)) from None


def run(*words: str) -> str:
    """Standard output of a program that must succeed."""
    done = attempt(*words)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip())[-1500:]
        raise LauncherError(Problem(f"`{shlex.join(words)}` ended with {done.returncode}", why=said))
    return done.stdout


def read(path: Path) -> str:
    """Text of a file; empty when there is none."""
    try:
        return path.read_text()
    except OSError:
        return ""


def write(path: Path, text: str, *, mode: int = 0o644) -> None:
    """Put a whole file in place at once, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.chmod(mode)
    os.replace(new, path)


def write_setting(path: Path, text: str) -> None:
    """Write a file of /proc/sys or a cgroup, where the kernel has it and lets us."""
    with contextlib.suppress(OSError):
        path.write_text(text)
