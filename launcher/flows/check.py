"""check: what must hold on each host and is nobody's to change; reads only, one request a host."""

from __future__ import annotations

from collections.abc import Iterator

from launcher.execute.hands import Hands
from launcher.execute.observe import probes_of
from launcher.model.facts import Facts
from launcher.model.finding import Finding, Severity
from launcher.model.problem import Problem
from launcher.model.role import Step
from launcher.model.wish import Wanted
from launcher.steps import KINDS


def check(fleet: Hands, wanted: Wanted) -> tuple[Finding, ...]:
    """A finding for each check of each host, in the inventory's order."""
    questions = {host: probes_of(checks) for host, checks in wanted.checks.items() if checks}
    answers = fleet.ask(questions, within_s=wanted.wish.inventory.ssh.answer_within_s)
    return tuple(
        finding
        for host, answer in answers.items()
        for finding in (
            [Finding(Severity.ERROR, host, answer.what, answer)]
            if isinstance(answer, Problem)
            else _verdicts(wanted.checks[host], answer)
        )
    )


def _verdicts(checks: tuple[Step, ...], facts: Facts) -> Iterator[Finding]:
    for step in checks:
        subject = f"{step.id}@{step.host}"
        drafts = KINDS[step.kind].changes(step.want, facts)
        if not drafts:
            yield Finding(Severity.OK, subject, "as expected")
        for draft in drafts:
            what = f"{step.id}: {draft.subject} gives {draft.before}, expected {draft.after}"
            problem = Problem(what, where=f"{step.host}, {step.source}", why=step.because, do=step.do)
            yield Finding(Severity.ERROR, subject, what, problem)
