"""Session: one host's connection and the agent on it; turns whatever goes wrong there into a Problem."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from launcher.model.problem import LauncherError, Problem
from launcher.model.secret import Secret
from launcher.remote import faults
from launcher.remote.faults import Place
from launcher.remote.link import (
    HOST_PYTHON,
    SILENCE_S,
    EndedError,
    LateError,
    Link,
    OldPythonError,
    SilentError,
    start_command,
)
from launcher.remote.ssh import Wire

START_WITHIN_S = 15.0
END_WITHIN_S = 2.0
DIAGNOSES: Mapping[int, Callable[[Place], Problem]] = {
    71: faults.sudo_missing,
    72: faults.sudo_password_wanted,
    73: faults.python_missing,
    74: faults.sudo_password_wrong,
    75: faults.sudo_not_allowed,
}
# Why no agent came, as one of the exit codes above: sudo's words differ by language and release, so they are
# not read. With a password on stdin, asked once and refused means not allowed; asked again: it was wrong.
DIAGNOSE = r"""
look='command -v python3 >/dev/null || exit 73'
[ "$(id -u)" = 0 ] && exec sh -c "$look"
command -v sudo >/dev/null || exit 71
if [ "$1" = -n ]; then
  sudo -n sh -c "$look" 2>/dev/null; s=$?
  [ $s = 1 ] && exit 72
  exit $s
fi
asked=$(sudo -k -S -p 'asked;' sh -c "$look" 2>&1 >/dev/null); s=$?
[ $s = 1 ] || exit $s
case "$asked" in *'asked;'*'asked;'*) exit 74;; esac
exit 75
"""


class Session:
    """One agent. It starts with the first request; after a LauncherError it is of no use any more."""

    def __init__(self, place: Place, wire: Wire, *, password: Secret | None) -> None:
        self.place = place
        self.usable = True
        self._wire = wire
        self._password = password.reveal() if password and place.user != "root" else ""
        start = start_command()
        if place.user != "root":
            start = ("sudo -k -S -p '' " if self._password else "sudo -n ") + start
        try:
            wire.start(start, within_s=START_WITHIN_S)
            self._link = Link(wire, secret=self._password)
        except (OSError, SilentError):
            self.close()
            raise LauncherError(faults.connection_lost(place)) from None

    def request(
        self,
        frame: Mapping[str, Any],
        *,
        within_s: float,
        blobs: Mapping[str, bytes] | None = None,
        module: str = "",
        on_event: Callable[[dict[str, Any]], None] = lambda event: None,
    ) -> dict[str, Any]:
        """The agent's answer; LauncherError with the one Problem that explains why there is none."""
        try:
            return self._link.request(frame, within_s=within_s, blobs=blobs, module=module, on_event=on_event)
        except EndedError:
            problem = self._why_ended() if self._link.greeted else self._why_not_started()
        except OldPythonError as old:
            problem = faults.python_old(self.place, old.found, HOST_PYTHON)
        except SilentError:
            problem = faults.connection_lost(self.place, SILENCE_S)
        except LateError:
            problem = faults.answer_late(self.place, within_s)
        self.close()
        raise LauncherError(problem)

    def beat(self) -> None:
        """Say that the controller lives."""
        if self.usable:
            self._link.beat()

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes sent and received, SSH included."""
        return self._wire.traffic

    def close(self) -> None:
        """Hang up; the agent ends between two ops, and lets go of the lock."""
        self.usable = False
        self._wire.close()

    def _why_ended(self) -> Problem:
        status, said = self._wire.ending(END_WITHIN_S)
        if not self._wire.alive():
            return faults.connection_lost(self.place)
        return faults.agent_died(self.place, status, said)

    def _why_not_started(self) -> Problem:
        status, said = self._wire.ending(END_WITHIN_S)
        words = ["sh", "-c", DIAGNOSE, "sh", "-S" if self._password else "-n"]
        try:
            found = self._wire.ask(
                shlex.join(words), self._password.encode() + b"\n", within_s=START_WITHIN_S
            )
        except OSError:
            return faults.connection_lost(self.place)
        if found is not None and found in DIAGNOSES:
            return DIAGNOSES[found](self.place)
        return faults.agent_not_started(self.place, status, said)
