"""View: what a command has to say, whoever listens: text for people, or JSON lines for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from launcher.model.finding import Finding
from launcher.model.plan import Plan
from launcher.model.problem import Problem
from launcher.model.run import Event
from launcher.model.wish import Wanted


class View(Protocol):
    """Results go to stdout; news on the way, problems and questions to stderr."""

    def event(self, event: Event) -> None:
        """Something happened."""

    def plan(self, plan: Plan, *, title: str, remark: str = "") -> None:
        """What would change; `remark`: what is to be known before, in a line."""

    def offline(self, wanted: Wanted) -> None:
        """Every step and command line, of a plan that asked no host."""

    def findings(self, findings: Iterable[Finding]) -> None:
        """What was looked at, and the verdicts."""

    def problems(self, problems: Sequence[Problem]) -> None:
        """What is wrong, and what to do."""

    def status(self, status: Any) -> None:
        """What is up, as `flows.status.Status` has it."""

    def result(self, kind: str, value: Any, text: str) -> None:
        """A result: the value for programs, the text for people."""

    def say(self, text: str) -> None:
        """A remark for people; programs do not get it."""


def choose(*, json_lines: bool, verbose: int = 0) -> View:
    """The view that the user asked for."""
    if json_lines:
        from launcher.cli.jsonview import JsonView

        return JsonView()
    from launcher.cli.view import TextView

    return TextView(verbose=verbose)
