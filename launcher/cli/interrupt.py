"""Interrupt: what ctrl-C does to a command that works on hosts, once and twice; Stopped: to any other."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from launcher.model.problem import Exit

# `timeout` and the like signal a process and then its group: one wish, two signals
SAME_PRESS_S = 0.5


class Stopped(BaseException):
    """The user pressed ctrl-C; what was begun on this machine is tidied up on the way out."""


def stop_on_signal() -> None:
    """Make ctrl-C raise Stopped."""

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        raise Stopped

    signal.signal(signal.SIGINT, on_signal)


class Interrupt:
    """Ends a command at once as long as it only looks; lets a change that was begun come to its end.

    A second ctrl-C always leaves at once: hosts finish the op they are at, jobs and units go on.
    """

    def __init__(self, leave: Callable[[], None] = lambda: None) -> None:
        """`leave` is called before a command that only looked ends."""
        self._leave = leave
        self._requested_s = 0.0
        self._changing = False
        signal.signal(signal.SIGINT, self._on_signal)

    def __call__(self) -> bool:
        """Was ctrl-C pressed?"""
        return self._requested_s > 0

    def changes_begin(self) -> None:
        """From now on a first ctrl-C waits for the ops that were sent."""
        self._changing = True

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self():
            if time.monotonic() - self._requested_s > SAME_PRESS_S:
                os._exit(Exit.INTERRUPTED)
            return
        self._requested_s = time.monotonic()
        if self._changing:
            tell(
                "\ninterrupted: no new operation starts, those that run come to their end\n"
                "jobs and engines on the hosts go on (dsv32-launch status); ctrl-C again leaves at once\n"
            )
            return
        self._leave()
        tell("\ninterrupted, nothing was changed\n")
        # no exception: wherever it came up it could be lost, and threads that still connect would outlive it
        os._exit(Exit.INTERRUPTED)


def tell(text: str) -> None:
    """Write to stderr past Python's buffers, which the interrupted code may be writing to at this moment."""
    with suppress(RuntimeError, OSError):
        sys.stdout.flush()
    os.write(2, text.encode())
