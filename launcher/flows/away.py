"""Away: instances that serve are kept from requests while they move, and given back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from launcher.execute.hands import Hands
from launcher.flows.drain import await_idle, of_routers, others, switch, with_entry
from launcher.flows.drained import MOVING, drained_on, lasting
from launcher.flows.run import Run
from launcher.model.deployment import Drained, Instance
from launcher.model.finding import Finding, Severity
from launcher.model.problem import Problem
from launcher.model.run import Event
from launcher.model.wish import Wanted


@dataclass(slots=True)
class Away:
    """`execute.progress.Requests` by the routers of `wanted`.

    Where nothing else serves its pool an instance is left to its requests: they fail whether routers know of
    it or not.
    """

    fleet: Hands
    wanted: Wanted
    within_s: float
    """Seconds to wait for the requests that an instance has begun."""
    run: Run
    findings: list[Finding] = field(default_factory=list)

    def take_away(self, instances: Sequence[Instance]) -> Mapping[str, Problem]:
        """By routers that know nothing of them; then until they are idle, or the time is over."""
        before = drained_on(self.fleet, self.wanted)
        now = lasting(before)
        for instance in instances:
            if others(self.fleet, self.wanted, instance, now):
                now = with_entry(now, away_for(instance, MOVING, self.run))
        going = [i for i in instances if i.name in {d.instance for d in now}]
        stuck = self._switched(now, said=f"{names(going)} gets no requests") if now != before else {}
        if not stuck:
            self.findings += [ended(self.fleet, self.wanted, i, self.within_s, self.run) for i in going]
        return stuck

    def give_back(self, instances: Sequence[Instance]) -> Mapping[str, Problem]:
        """By routers that know all but what people have drained."""
        before = drained_on(self.fleet, self.wanted)
        if lasting(before) == before:
            return {}
        return self._switched(lasting(before), said=f"{names(instances)} gets requests again")

    def _switched(self, drained: tuple[Drained, ...], *, said: str) -> Mapping[str, Problem]:
        findings = tuple(switched(self.fleet, self.wanted, drained, self.run, said=said))
        self.findings += (f for f in findings if f.problem is None)
        return {f.subject: f.problem for f in findings if f.problem}


def away_for(instance: Instance, because: str, run: Run) -> Drained:
    """What is told of an instance that a run takes from requests; `because` says which runs may end that."""
    return Drained(instance.name, run.who, run.when, because + (run.why or run.flow))


def switched(
    fleet: Hands, wanted: Wanted, drained: tuple[Drained, ...], run: Run, *, said: str
) -> Iterator[Finding]:
    """Routers that know nothing of what is drained: a Finding says so, or one for each host that failed."""
    here = of_routers(wanted, drained)
    outcome = switch(fleet, here, lambda _: True, run)
    failed = {host: told.problem for host, told in outcome.hosts.items()} if outcome else {}
    problems = {host: problem for host, problem in failed.items() if problem}
    yield from (Finding(Severity.ERROR, host, p.what, p) for host, p in problems.items())
    if not problems:
        yield told(Finding(Severity.OK, "router", said), run)


def ended(fleet: Hands, wanted: Wanted, instance: Instance, within_s: float, run: Run) -> Finding:
    """It has ended what it has begun; or what is cut off is told."""
    idle = await_idle(fleet, wanted, instance, run, within_s=within_s)
    if idle.problem:
        idle = Finding(Severity.WARNING, instance.name, f"{idle.text}; cut off")
    return told(idle, run)


def told(finding: Finding, run: Run) -> Finding:
    """The finding, and an event for it: what moves a service takes long, and is looked at meanwhile."""
    run.listener(
        Event("finding", finding.text, subject=finding.subject, data={"severity": finding.severity.name})
    )
    return finding


def names(instances: Iterable[Instance]) -> str:
    """`prefill-0, decode-0`."""
    return ", ".join(i.name for i in instances)
