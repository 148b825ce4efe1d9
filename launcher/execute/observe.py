"""Observed: the answers of all hosts to the probes of all their steps, one request a host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from launcher.execute.hands import Hands
from launcher.execute.orphans import UNITS_OF_OURS
from launcher.model.facts import Facts, Probe
from launcher.model.hold import HOLD
from launcher.model.problem import Problem
from launcher.model.revision import LAST
from launcher.model.role import Step
from launcher.model.wish import Wanted
from launcher.steps import KINDS


@dataclass(frozen=True, slots=True)
class Observed:
    """What the hosts answered; a host is in one of the two."""

    facts: Mapping[str, Facts]
    problems: Mapping[str, Problem] = field(default_factory=dict)

    def updated(self, newer: Observed) -> Observed:
        """These answers, with newer ones of some hosts in their place."""
        facts = {h: f for h, f in self.facts.items() if h not in newer.problems}
        problems = {h: p for h, p in self.problems.items() if h not in newer.facts}
        return Observed(facts={**facts, **newer.facts}, problems={**problems, **newer.problems})


def observe(fleet: Hands, wanted: Wanted, hosts: Iterable[str] | None = None) -> Observed:
    """Ask `hosts`, or all that have steps, what their steps need to know."""
    asked = wanted.steps if hosts is None else hosts
    questions = {host: questions_of(wanted.steps[host]) for host in asked}
    answers = fleet.ask(questions, within_s=wanted.wish.inventory.ssh.answer_within_s)
    return Observed(
        facts={h: a for h, a in answers.items() if isinstance(a, Facts)},
        problems={h: a for h, a in answers.items() if isinstance(a, Problem)},
    )


def questions_of(steps: Iterable[Step]) -> tuple[Probe, ...]:
    """The probes of one host's steps, each once; for units that no step names any more; who holds it; which
    run it remembers last."""
    return tuple(dict.fromkeys([*probes_of(steps), UNITS_OF_OURS, HOLD, LAST]))


def probes_of(steps: Iterable[Step]) -> tuple[Probe, ...]:
    """The probes of steps or checks, each once."""
    return tuple(dict.fromkeys(p for step in steps for p in KINDS[step.kind].probes(step.want)))
