"""Observed: the answers of all hosts to the probes of all their steps, one request a host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    beside: Mapping[str, Facts | Problem] = field(default_factory=dict)
    """The answers of hosts that were only asked what serves there."""

    @property
    def answers(self) -> Mapping[str, Facts | Problem]:
        """What each host answered, or why it did not."""
        return {**self.beside, **self.problems, **self.facts}


def observe(
    fleet: Hands,
    wanted: Wanted,
    hosts: Iterable[str] | None = None,
    *,
    beside: Mapping[str, Sequence[Probe]] | None = None,
) -> Observed:
    """Ask `hosts`, or all that have steps, what their steps need to know; and whatever hosts `beside` names,
    in the same request."""
    questions = {
        host: questions_of(wanted.steps[host]) for host in (wanted.steps if hosts is None else hosts)
    }
    asked = dict(questions)
    for host, more in (beside or {}).items():
        asked[host] = tuple(dict.fromkeys([*questions.get(host, ()), *more]))
    answers = fleet.ask(asked, within_s=wanted.wish.inventory.ssh.answer_within_s)
    own = {host: answers[host] for host in questions}
    return Observed(
        facts={h: a for h, a in own.items() if isinstance(a, Facts)},
        problems={h: a for h, a in own.items() if isinstance(a, Problem)},
        beside={h: a for h, a in answers.items() if h not in questions},
    )


def questions_of(steps: Iterable[Step]) -> tuple[Probe, ...]:
    """The probes of one host's steps, each once; for units that no step names any more; who holds it; which
    run it remembers last."""
    return tuple(dict.fromkeys([*probes_of(steps), UNITS_OF_OURS, HOLD, LAST]))


def probes_of(steps: Iterable[Step]) -> tuple[Probe, ...]:
    """The probes of steps or checks, each once."""
    return tuple(dict.fromkeys(p for step in steps for p in KINDS[step.kind].probes(step.want)))
