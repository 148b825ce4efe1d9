"""Hands: what this layer needs of a fleet, so that a table of answers can stand in for one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from launcher.model.facts import Facts, Probe
from launcher.model.plan import Op
from launcher.model.problem import Problem
from launcher.model.run import Listener

T = TypeVar("T")


class Done(Protocol):
    """How the ops of one request went."""

    @property
    def ok(self) -> bool:
        """All were done."""

    @property
    def failed_index(self) -> int | None:
        """The op that failed; those before it are done, those after it were not begun. None: all are done,
        or the host was lost and nobody knows how far it came."""

    @property
    def error(self) -> Problem | None:
        """Why."""


class Hands(Protocol):
    """The fleet's verbs, as `remote.Fleet` has them."""

    def lock(self, hosts: Iterable[str]) -> Mapping[str, Problem]:
        """Keep other runs off these hosts until the fleet is closed. LockedError where another run or person
        holds one; host → why it could not be asked."""

    def ask(
        self, questions: Mapping[str, Sequence[Probe]], *, within_s: float
    ) -> Mapping[str, Facts | Problem]:
        """All answers of each host, or why there are none."""

    def do(self, host: str, ops: Sequence[Op], *, listener: Listener, within_s: float, subject: str) -> Done:
        """Ops of one host in one request, in order, up to the first that fails."""

    def reboot(self, host: str, *, listener: Listener, within_s: float) -> Problem | None:
        """Boot a host anew and wait until it has started everything; why it has not, in time."""

    def map(self, hosts: Iterable[str], fn: Callable[[str], T]) -> Mapping[str, T | Problem]:
        """`fn` of each host, hosts in parallel; what it raised as a LauncherError is a Problem."""
