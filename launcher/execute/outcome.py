"""Outcome: what a run did to each host and instance, what went wrong, and what to type next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from launcher.model.problem import Exit, Problem


@dataclass(frozen=True, slots=True)
class HostOutcome:
    """One host's share."""

    planned: int
    done: int
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that a run ended with."""

    hosts: Mapping[str, HostOutcome]
    """Hosts that had changes, and hosts that were not reached."""
    instances: Mapping[str, Problem | None]
    """Every instance of the deployment; a Problem where it was not started or did not become ready."""
    problems: tuple[Problem, ...]
    """All of them, in the order in which they came up."""
    interrupted: bool
    failed: bool
    """A move failed."""
    committed: bool
    """Users reach what is new: nothing goes back any more."""
    next_command: str
    """What a person types next."""

    @property
    def done(self) -> int:
        """Changes that were applied."""
        return sum(h.done for h in self.hosts.values())

    @property
    def planned(self) -> int:
        """Changes that the plan had."""
        return sum(h.planned for h in self.hosts.values())

    @property
    def exit_code(self) -> Exit:
        """What the command ends with."""
        if self.interrupted:
            return Exit.INTERRUPTED
        return Exit.HOSTS_FAILED if self.problems else Exit.DONE
