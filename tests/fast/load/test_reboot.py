"""A reboot is over when another boot has started everything, and a host that stays away is told in time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fake_clock import FakeClock

from launcher.model.facts import Facts, Probe
from launcher.model.plan import Op
from launcher.model.problem import LockedError, Problem
from launcher.model.run import Event, Listener
from launcher.remote.reboot import BOOT_ID, STARTED, Reboot

GONE = Problem("h1: connection refused", "h1")


def boot(boot_id: str, state: str = "running") -> tuple[str, str]:
    return boot_id, state


@dataclass(frozen=True)
class Done:
    failed_index: int | None = None
    error: Problem | None = None


@dataclass
class OneHost:
    """What it says look by look, the last for good; `locked` by this run before it goes."""

    says: list[tuple[str, str] | Problem]
    locked: bool = True
    taken: bool = False
    order: Done = Done()
    forgotten: int = 0
    told: list[str] = field(default_factory=list)

    def ask(
        self, questions: Mapping[str, Iterable[Probe]], within_s: float | None = None
    ) -> Mapping[str, Facts | Problem]:
        said = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if isinstance(said, Problem):
            return {"h1": said}
        return {"h1": Facts("h1", {BOOT_ID: {"text": said[0] + "\n"}, STARTED: {"stdout": said[1] + "\n"}})}

    def do(self, host: str, ops: Sequence[Op], *, listener: Listener, within_s: float, subject: str) -> Done:
        self.told += [op.verb for op in ops]
        return self.order

    def forget(self, host: str) -> bool:
        self.forgotten += 1
        return self.locked

    def lock(self, hosts: Iterable[str]) -> Mapping[str, Problem]:
        self.told.append("lock")
        if self.taken:
            raise LockedError(Problem("locked by run r2"))
        return {}


def rebooted(host: OneHost, within_s: float = 60.0) -> tuple[Problem | None, list[str], FakeClock]:
    events: list[Event] = []
    clock = FakeClock()
    problem = Reboot(host, "h1", events.append, within_s, clock).done()
    return problem, [e.text for e in events], clock


def test_it_is_back_when_another_boot_has_started_everything() -> None:
    going: list[Any] = [boot("a"), boot("a"), GONE, boot("b", "starting"), boot("b", "degraded")]
    host = OneHost(going)
    problem, said, clock = rebooted(host)
    assert problem is None
    assert said == ["h1 reboots", "h1 is back after 8 s"]
    assert clock.slept == [2.0] * 4
    assert host.told == ["reboot", "lock"]
    assert host.forgotten == 2, "once it was told to go, and once it did not answer"


def test_who_was_not_locked_is_not_locked_afterwards() -> None:
    host = OneHost([boot("a"), boot("b")], locked=False)
    assert rebooted(host)[0] is None
    assert host.told == ["reboot"]


def test_a_host_that_stays_away_is_told_with_the_last_that_was_seen_of_it() -> None:
    ends: list[tuple[Any, str]] = [
        (GONE, "h1: connection refused"),
        (boot("a"), "h1 is still the boot that was to end"),
        (boot("b", "starting"), "systemd says: starting"),
        (boot("b", ""), "systemd says: nothing"),
    ]
    for last, why in ends:
        problem, _, clock = rebooted(OneHost([boot("a"), last]), within_s=9.0)
        assert problem is not None
        assert (problem.what, problem.why) == ("h1 did not come back within 9 s of its reboot", why)
        assert clock.seconds == 9.0


def test_who_refuses_is_not_waited_for() -> None:
    refusal = Problem("h1: reboot: not permitted")
    problem, _, clock = rebooted(OneHost([boot("a")], order=Done(0, refusal)))
    assert problem == refusal
    assert clock.slept == []


def test_somebody_else_was_quicker_with_the_lock() -> None:
    problem, _, _ = rebooted(OneHost([boot("a"), boot("b")], taken=True))
    assert problem == Problem("locked by run r2")
