"""NoHands: hosts of which nothing may be asked or done; a test's own hosts override what they know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from launcher.model.facts import Facts, Probe
from launcher.model.plan import Op
from launcher.model.problem import Problem
from launcher.model.run import Listener

T = TypeVar("T")


class NoHands:
    """`execute.hands.Hands`, all of whose verbs fail the test."""

    def lock(self, hosts: Iterable[str]) -> Mapping[str, Problem]:
        raise AssertionError("nothing is locked")

    def ask(
        self, questions: Mapping[str, Sequence[Probe]], *, within_s: float
    ) -> Mapping[str, Facts | Problem]:
        raise AssertionError("nothing is asked")

    def do(self, host: str, ops: Sequence[Op], *, listener: Listener, within_s: float, subject: str) -> Any:
        raise AssertionError("nothing is changed")

    def reboot(self, host: str, *, listener: Listener, within_s: float) -> Problem | None:
        raise AssertionError("nothing boots")

    def map(self, hosts: Iterable[str], fn: Callable[[str], T]) -> Mapping[str, T | Problem]:
        raise AssertionError("nothing is done on several hosts")
