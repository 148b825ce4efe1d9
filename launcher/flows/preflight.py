"""Preflight: all that keeps a change from beginning, asked before anybody approves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from launcher.execute.hands import Hands
from launcher.execute.saved import refuse_if_moved
from launcher.flows.check import all_checks, refusing
from launcher.flows.forecast import Forecast, forecast
from launcher.flows.lint import judged
from launcher.load.ranges import host_range
from launcher.load.schema import near
from launcher.model.check import CheckFinding
from launcher.model.finding import RuleFinding
from launcher.model.problem import InputError, LauncherError, PlanRefusedError, Problem
from launcher.model.run import Event, Listener
from launcher.rollout.planning import Proposal


@dataclass(slots=True)
class Report:
    """What a preflight found."""

    warnings: tuple[RuleFinding, ...] = ()
    """Of lint's rules."""
    forecast: Forecast | None = None
    """How long the weights take that are to come."""
    ignored: tuple[CheckFinding, ...] = ()
    """Checks that fail, and that somebody has waived with a reason."""
    refusals: list[LauncherError] = field(default_factory=list)
    """Why the change must not begin, most serious first; empty where it may."""

    def refuse(self, listener: Listener) -> None:
        """Raise the first refusal; without any, write down what was waived."""
        if self.refusals:
            raise self.refusals[0]
        for f in self.ignored:
            data = {"check": f.check.id, "hosts": f.hosts, "owner": f.check.owner}
            listener(Event("despite", what_of(f), subject=f.check.id, data=data))


@dataclass(frozen=True, slots=True)
class Preflight:
    """What is asked before a change. A change of nothing is refused only by its own plan."""

    data_dir: Path | None = None
    waived: frozenset[str] = frozenset()
    """Ids of checks that may fail."""
    saved: str = ""
    """The text of a saved plan that the new one must equal; empty: there is none."""
    saved_path: str = ""

    def __call__(self, fleet: Hands, proposal: Proposal) -> Report:
        """Ask hosts and rules. Nothing is raised: whoever only plans wants all of it."""
        report, planned = Report(), proposal.plan
        if self.saved:
            self._note(report, lambda: refuse_if_moved(self.saved, planned, path=self.saved_path))
        if refused := planned.rollout.refused:
            report.refusals.append(PlanRefusedError(*refused))
        if planned:
            self._note(report, lambda: self._lint(report, proposal))
            self._note(report, lambda: self._checks(report, fleet, proposal))
            if planned.stage("weights"):
                report.forecast = forecast(fleet, proposal.wanted, planned)
        return report

    def _note(self, report: Report, ask: Callable[[], None]) -> None:
        try:
            ask()
        except LauncherError as error:
            report.refusals.append(error)

    def _lint(self, report: Report, proposal: Proposal) -> None:
        report.warnings = judged(proposal.wanted, data_dir=self.data_dir)

    def _checks(self, report: Report, fleet: Hands, proposal: Proposal) -> None:
        failing = refusing(fleet, proposal.wanted, tuple(proposal.plan.facts), data_dir=self.data_dir)
        report.ignored = tuple(f for f in failing if f.check.id in self.waived)
        if left := [f for f in failing if f.check.id not in self.waived]:
            raise LauncherError(*refusals(left))


def no_preflight(fleet: Hands, proposal: Proposal) -> Report:
    """Nothing is asked but the plan itself."""
    refused = proposal.plan.rollout.refused
    return Report(refusals=[PlanRefusedError(*refused)] if refused else [])


def waived_checks(words: str, why: str, data_dir: Path | None) -> frozenset[str]:
    """The ids of `--despite`. InputError for an unknown one, and where no reason is given."""
    ids = frozenset(word.strip() for word in words.split(",") if word.strip())
    if problems := list(_wrong_ids(ids, why, data_dir)) if ids else []:
        raise InputError(*problems)
    return ids


def _wrong_ids(ids: frozenset[str], why: str, data_dir: Path | None) -> Iterator[Problem]:
    known = [check.id for check in all_checks(data_dir=data_dir) if check.refuses_up]
    for name in sorted(ids - set(known)):
        yield Problem(
            f"no check that `up` refuses with is called `{name}`", "--despite", do=near(name, known)
        )
    if not why.strip():
        yield Problem("--despite without a reason", "--despite", do='say why: -m "..."')


def refusals(findings: Sequence[CheckFinding]) -> tuple[Problem, ...]:
    """Failing checks as the problems that `up` ends with."""
    return tuple(
        Problem(
            what_of(f),
            host_range(f.hosts),
            f.check.why,
            f"{f.check.owner}: {f.remedy}; or go on: --despite {f.check.id} -m WHY",
            more=f"dsv32-launch check --explain {f.check.id}",
        )
        for f in findings
    )


def what_of(finding: CheckFinding) -> str:
    """`driver version: 5 of 6 hosts 580.95.05, gpu04 580.82.07`."""
    return f"{finding.check.title}: {_answers(finding) if finding.groups else finding.what}"


def _answers(finding: CheckFinding) -> str:
    """Which hosts answer what: of a majority the number, of all others the names."""
    total = sum(len(hosts) for _, hosts in finding.groups)
    words = [f"{host_range(hosts)} {text}" for text, hosts in finding.groups]
    if finding.majority:
        text, hosts = finding.groups[0]
        words[0] = f"{len(hosts)} of {total} hosts {text}"
    return ", ".join(words) if finding.majority else "; ".join(words)
