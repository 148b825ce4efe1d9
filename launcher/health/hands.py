"""Hands: what this layer needs of a fleet, so that a table of answers can stand in for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from launcher.model.facts import Facts, Probe
from launcher.model.plan import Op
from launcher.model.problem import LauncherError, Problem
from launcher.model.run import Listener

# an answer that comes too late costs the connection, and a run's lock with it: so this is not how a lost host
# is noticed (its heartbeat is), but how long a host may take that starts engines on all its cores
look_within_s = 60.0


class Hands(Protocol):
    """The fleet's verbs, as `remote.Fleet` has them."""

    def ask(
        self, questions: Mapping[str, Sequence[Probe]], *, within_s: float
    ) -> Mapping[str, Facts | Problem]:
        """All answers of each host, or why there are none."""

    def do(self, host: str, ops: Sequence[Op], *, listener: Listener, within_s: float, subject: str) -> Any:
        """Ops of one host in one request, in order, up to the first that fails."""


def answers_of(hands: Hands, questions: Mapping[str, Sequence[Probe]]) -> Mapping[str, Facts]:
    """All answers of each host. LauncherError where one gives none."""
    found: dict[str, Facts] = {}
    for host, facts in hands.ask(questions, within_s=look_within_s).items():
        if isinstance(facts, Problem):
            raise LauncherError(facts)
        found[host] = facts
    return found
