"""Interrupt: what ctrl-C does, once and twice."""

from __future__ import annotations

import os
import signal
import sys
import time
from types import FrameType

from launcher.model.problem import Exit, LauncherError, Problem

# `timeout` and the like signal a process and then its group: one wish, two signals
SAME_PRESS_S = 0.5


class InterruptedRunError(LauncherError):
    """The user pressed ctrl-C while nothing was being changed."""

    exit_code = Exit.INTERRUPTED


class Interrupt:
    """Ends a command at once as long as it only looks; lets a change that was begun come to its end.

    A second ctrl-C always leaves at once: hosts finish the op they are at, jobs and units go on.
    """

    def __init__(self) -> None:
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
        if not self._changing:
            raise InterruptedRunError(Problem("interrupted, nothing was changed"))
        sys.stderr.write(
            "\ninterrupted: no new operation starts, those that run come to their end\n"
            "jobs and engines on the hosts go on (dsv32-launch status); ctrl-C again leaves at once\n"
        )
