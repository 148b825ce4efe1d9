"""Progress: what an apply works with, and what has become of its hosts and instances so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from launcher.execute.hands import Hands
from launcher.execute.outcome import HostOutcome, Outcome
from launcher.execute.planner import broken_instances
from launcher.model.deployment import Instance
from launcher.model.inventory import ENGINE_POOLS
from launcher.model.plan import Action, Change, Plan
from launcher.model.problem import Problem
from launcher.model.rollout import Move
from launcher.model.run import Event, Listener
from launcher.model.wish import Wanted

AwaitReady: TypeAlias = Callable[[Instance], Problem | None]
"""Waits until an instance that was just started is ready; a Problem says why it is not."""


def await_all(
    instances: Sequence[Instance], await_ready: AwaitReady
) -> tuple[tuple[Instance, Problem | None], ...]:
    """Each instance and what keeps it from being ready, all awaited at once."""
    with ThreadPoolExecutor(max_workers=len(instances) or 1) as threads:
        return tuple(zip(instances, threads.map(await_ready, instances), strict=True))


class Traffic(Protocol):
    """The requests of users: who gets them, and whether they are answered."""

    def drain(self, move: Move | None) -> Mapping[str, Problem]:
        """Have routers send nothing to what the move drains, and requests to all else again; then wait until
        what was drained is idle. None: the rollout is over. Host → why that could not be done there."""

    def check(self, move: Move) -> Problem | None:
        """Ask the move's instances, with each other and with their partners; the first problem."""


class Untouched:
    """Requests go where they go: there is no router, or nothing that serves moves."""

    def drain(self, move: Move | None) -> Mapping[str, Problem]:
        """Nobody is told."""
        return {}

    def check(self, move: Move) -> Problem | None:
        """Nobody is asked."""
        return None


@dataclass(slots=True)
class Progress:
    """Changed by the thread of `apply` alone; what threads of hosts find comes back as values."""

    fleet: Hands
    wanted: Wanted
    plan: Plan
    listener: Listener
    await_ready: AwaitReady
    interrupted: Callable[[], bool]
    traffic: Traffic = field(default_factory=Untouched)
    begun: int = -1
    """The number of the last move that was begun."""
    failed: list[Move] = field(default_factory=list)
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

    @property
    def committed(self) -> bool:
        """A move was begun since which users reach what is new."""
        return any(move.commits for move in self.plan.rollout.moves[: self.begun + 1])

    def begin(self, number: int) -> None:
        """This move is next."""
        move = self.plan.rollout.moves[number]
        self.begun = number
        self.listener(Event("move-started", ", ".join(move.instances or move.hosts), data={"number": number}))

    def may_begin(self, move: Move) -> bool:
        """After a failure nothing that serves is restarted, moves that build on each other end, and routers
        go on leaving out what was drained and does not serve."""
        if not self.failed:
            return True
        drained = any(failed.drained for failed in self.failed)
        settled = not (drained and "router" in move.stages)
        return self.plan.rollout.independent and settled and not self._restarts(move)

    def blocked(self, move: Move) -> bool:
        """Would it drain and restart an instance that is lost already? That one goes on as it is."""
        return self._restarts(move) and any(name in self.lost_instances for name in move.instances)

    def _restarts(self, move: Move) -> bool:
        restarting = {c.instance for c in self.plan.changes if c.action is Action.RESTART}
        return bool(restarting & set(move.instances))

    def spoilt(self, move: Move) -> bool:
        """Is one of its instances lost, or, where moves build on each other, one of its hosts?"""
        lost = any(name in self.lost_instances for name in move.instances)
        return lost or (not self.plan.rollout.independent and any(h in self.lost_hosts for h in move.hosts))

    def fail(self, move: Move) -> None:
        """Instances that serve and would have moved later go on as they are."""
        self.failed.append(move)
        if len(self.failed) > 1 or not self.plan.rollout.independent:
            return
        lost = next((name for name in move.instances if name in self.lost_instances), "")
        why = f"{lost}, which moved before it, is not ready" if lost else "an earlier move failed"
        moves = self.plan.rollout.moves
        here = [name for name in move.instances if name not in self.lost_instances and self.blocked(move)]
        later = [name for m in moves[self.begun + 1 :] if self._restarts(m) for name in m.instances]
        do = self.next_command
        for name in (*here, *later):
            self.problems.append(
                Problem(
                    what=f"{name} is not restarted and runs what it ran before",
                    where=name,
                    why=why,
                    do=do,
                )
            )

    def lose_hosts(self, problems: Mapping[str, Problem]) -> None:
        """Lose each of these hosts."""
        for host, problem in problems.items():
            self.lose_host(host, problem)

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
                again = any(c.instance == name and c.action is Action.RESTART for c in self.plan.changes)
                what = f"{name} is not {'restarted' if again else 'started'}"
                self.lose_instance(name, Problem(what, where=host, why=why, do=problem.do))

    def lose_instance(self, name: str, problem: Problem) -> None:
        """It counts as not serving."""
        if name not in self.lost_instances:
            self.lost_instances[name] = problem
            self.problems.append(problem)
            self.listener(Event("instance-failed", problem.what, subject=name))

    def lose_all(self, names: Iterable[str], problem: Problem) -> None:
        """These instances count as not serving, all because of one problem."""
        self.problems.append(problem)
        for name in names:
            self.lost_instances.setdefault(name, problem)
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
        verb = "up" if self.problems or self.failed or self.interrupted() else look
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
            failed=bool(self.failed),
            committed=self.committed,
            next_command=self.next_command,
        )
