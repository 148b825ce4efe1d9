"""One command at a time, also when one was killed; knows not what is locked."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path


@contextlib.contextmanager
def held(path: Path, *, wait: Callable[[], None]) -> Iterator[None]:
    """Hold a lock file, calling `wait` once when another command has it.

    Programs that `programs.attempt` starts inherit it: the lock of a killed command goes with the last of
    them, so that the next command does not meet one that is still at work.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        os.set_inheritable(file.fileno(), True)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
