"""Progress: what an apply works with, and what has become of its hosts and instances so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from launcher.execute.hands import Hands
from launcher.execute.outcome import HostOutcome, Outcome
from launcher.execute.planner import broken_instances
from launcher.model.deployment import Instance
from launcher.model.inventory import ENGINE_POOLS
from launcher.model.plan import Change, Plan
from launcher.model.problem import Problem
from launcher.model.run import Event, Listener
from launcher.model.wish import Wanted

Await: TypeAlias = Callable[[Instance], Problem | None]
"""Waits until an instance that was just started is ready; a Problem says why it is not."""


class Requests(Protocol):
    """Takes instances that serve away from requests before they restart, and gives them back."""

    def take_away(self, instances: Sequence[Instance]) -> Mapping[str, Problem]:
        """Nothing new is sent to them, and they have ended what they had begun. Host → why that could not be
        done there: they serve on, and are not to be restarted."""

    def give_back(self, instances: Sequence[Instance]) -> Mapping[str, Problem]:
        """Requests are sent to them again; host → why not."""


class LeftAlone:
    """Whoever has no router, or no lock on the hosts that route, restarts what gets requests."""

    def take_away(self, instances: Sequence[Instance]) -> Mapping[str, Problem]:
        """They go on to get requests."""
        return {}

    def give_back(self, instances: Sequence[Instance]) -> Mapping[str, Problem]:
        """They never went."""
        return {}


@dataclass(slots=True)
class Progress:
    """Changed by the thread of `apply` alone; what threads of hosts find comes back as values."""

    fleet: Hands
    wanted: Wanted
    plan: Plan
    listener: Listener
    await_ready: Await
    interrupted: Callable[[], bool]
    requests: Requests = field(default_factory=LeftAlone)
    reboots: bool = True
    """Hosts whose kernel is to show something else are booted anew; else they are told of, and left there."""
    done: list[Change] = field(default_factory=list)
    lost_hosts: dict[str, Problem] = field(default_factory=dict)
    """Hosts not reached, or with a step that failed: nothing more is sent there."""
    lost_instances: dict[str, Problem] = field(default_factory=dict)
    """Instances that do not serve, as far as this run knows."""
    problems: list[Problem] = field(default_factory=list)

    @property
    def instances(self) -> tuple[Instance, ...]:
        """All that the deployment has."""
        return self.wanted.deployment.instances if self.wanted.deployment else ()

    def lose_host(self, host: str, problem: Problem) -> None:
        """Nothing more is sent to it, and what was to start there does not."""
        if host in self.lost_hosts:
            return
        self.lost_hosts[host] = problem
        self.problems.append(problem)
        self.listener(Event("host-failed", problem.what, host=host))
        unreached = host in self.plan.unreached
        for name in broken_instances(self.wanted, [host]):
            if unreached or any(c.instance == name for c in self.plan.changes):
                why = f"each rank waits for all others, and {host} is out: {problem.what}"
                self.lose_instance(
                    name, Problem(f"{name} is not started", where=host, why=why, do=problem.do)
                )

    def lose_instance(self, name: str, problem: Problem) -> None:
        """It counts as not serving."""
        if name not in self.lost_instances:
            self.lost_instances[name] = problem
            self.problems.append(problem)
            self.listener(Event("instance-failed", problem.what, subject=name))

    def left(self, changes: Iterable[Change]) -> tuple[Change, ...]:
        """Those of `changes` whose host and instance are not lost."""
        return tuple(
            c for c in changes if c.host not in self.lost_hosts and c.instance not in self.lost_instances
        )

    def below_minimum(self) -> tuple[Problem, ...]:
        """A Problem for each pool that has too few instances left to be put behind the router."""
        found = []
        for name in ENGINE_POOLS:
            pool = self.wanted.wish.inventory.pools.get(name)
            serving = [i for i in self.instances if i.pool == name and i.name not in self.lost_instances]
            if pool and len(serving) < pool.minimum:
                found.append(
                    Problem(
                        what=f"pool {name} has {len(serving)} of {pool.instances} instances, "
                        f"its minimum is {pool.minimum}",
                        where=pool.source,
                        why="the router is not switched to a pool that cannot serve",
                        do=self.next_command,
                    )
                )
        return tuple(found)

    @property
    def next_command(self) -> str:
        """Re-running is resuming; after success one looks."""
        look = "status" if self.wanted.deployment else "check"
        verb = "up" if self.problems or self.interrupted() else look
        return f"dsv32-launch {verb} {self.wanted.wish.inventory.path}"

    def outcome(self) -> Outcome:
        """What the run ended with."""
        hosts = {host: HostOutcome(0, 0, problem) for host, problem in self.lost_hosts.items()}
        for change in self.plan.changes:
            here = hosts.get(change.host, HostOutcome(0, 0))
            hosts[change.host] = replace(here, planned=here.planned + 1)
        for change in self.done:
            here = hosts[change.host]
            hosts[change.host] = replace(here, done=here.done + 1)
        return Outcome(
            hosts=hosts,
            instances={i.name: self.lost_instances.get(i.name) for i in self.instances},
            problems=tuple(self.problems),
            interrupted=self.interrupted(),
            next_command=self.next_command,
        )
