"""Reboot: a host goes, and is waited for until another boot has started everything; knows no plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from launcher.model.facts import Facts, Probe
from launcher.model.plan import Op
from launcher.model.problem import LauncherError, LockedError, Problem
from launcher.model.run import Event, Listener
from launcher.wait import CLOCK, Clock, wait_for

LOOK_EVERY_S = 2.0
ORDER_WITHIN_S = 60.0
ASK_WITHIN_S = 30.0
BOOT_ID = Probe("read", ("/proc/sys/kernel/random/boot_id", 64))
STARTED = Probe("command", (("systemctl", "is-system-running"), ASK_WITHIN_S))
"""`running`, or `degraded`: all that starts at boot has, or has failed."""


class Done(Protocol):
    """How the order went."""

    @property
    def failed_index(self) -> int | None:
        """The op that was refused; None: it is done, or the host was gone before it could say so."""

    @property
    def error(self) -> Problem | None:
        """Why."""


class Host(Protocol):
    """What of a fleet this needs."""

    def ask(
        self, questions: Mapping[str, Iterable[Probe]], within_s: float | None = None
    ) -> Mapping[str, Facts | Problem]:
        """Answers."""

    def do(self, host: str, ops: Sequence[Op], *, listener: Listener, within_s: float, subject: str) -> Done:
        """Ops."""

    def forget(self, host: str) -> bool:
        """Let go of the connection; was the host locked?"""

    def lock(self, hosts: Iterable[str]) -> Mapping[str, Problem]:
        """Take the lock; LockedError where somebody else was quicker."""


@dataclass(frozen=True, slots=True)
class Reboot:
    """One host, one reboot."""

    fleet: Host
    host: str
    listener: Listener
    within_s: float
    clock: Clock = CLOCK

    def done(self) -> Problem | None:
        """Order it, wait, lock again. LauncherError where the host cannot be asked, or refuses."""
        before = self._boot_id()
        self._say("reboots")
        told = self.fleet.do(
            self.host, [Op("reboot", {})], listener=self.listener, within_s=ORDER_WITHIN_S, subject="reboot"
        )
        if told.failed_index is not None:
            return told.error
        was_locked = self.fleet.forget(self.host)
        if problem := self._awaited(before):
            return problem
        if not was_locked:
            return None
        try:
            return self.fleet.lock([self.host]).get(self.host)
        except LockedError as taken:
            return taken.problems[0]

    def _awaited(self, before: str) -> Problem | None:
        """Why it is not back; None once it is."""
        last = f"{self.host} is still the boot that was to end"

        def missing() -> str:
            """What keeps it from being back; empty where nothing does."""
            nonlocal last
            answer = self.fleet.ask({self.host: (BOOT_ID, STARTED)}, ASK_WITHIN_S)[self.host]
            if isinstance(answer, Problem):
                self.fleet.forget(self.host)
                last = answer.what
            elif text_of(answer[BOOT_ID]) != before:
                state = text_of(answer[STARTED])
                last = "" if state in ("running", "degraded") else f"systemd says: {state or 'nothing'}"
            return last

        self.clock.sleep(LOOK_EVERY_S)  # it has only just been told to go
        left_s = self.within_s - LOOK_EVERY_S
        waited = wait_for(
            missing, lambda why: not why, every_s=LOOK_EVERY_S, within_s=left_s, clock=self.clock
        )
        if waited.satisfied:
            self._say(f"is back after {LOOK_EVERY_S + waited.took_s:.0f} s")
            return None
        return Problem(
            what=f"{self.host} did not come back within {self.within_s:.0f} s of its reboot",
            where=self.host,
            why=last,
            do="look at its console (ipmitool sol activate); once it is up, run again: the rest is untouched",
        )

    def _boot_id(self) -> str:
        answer = self.fleet.ask({self.host: (BOOT_ID,)})[self.host]
        if isinstance(answer, Problem):
            raise LauncherError(answer)
        return text_of(answer[BOOT_ID])

    def _say(self, what: str) -> None:
        self.listener(Event("phase", f"{self.host} {what}", host=self.host, subject="reboot"))


def text_of(answer: Any) -> str:
    """What was read or printed; nothing where that could not be."""
    return (
        str(answer.get("text") or answer.get("stdout") or "").strip() if isinstance(answer, Mapping) else ""
    )
