"""Instances started: each as a whole, those that serve one of a pool after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from launcher.execute.hosts import by_host, round_of, stop_on
from launcher.execute.progress import Progress
from launcher.execute.waves import waves
from launcher.model.deployment import Instance
from launcher.model.plan import Action, Change
from launcher.model.problem import LauncherError, Problem
from launcher.steps import unit


def start_instances(progress: Progress, changes: Sequence[Change]) -> None:
    """START, RESTART and STOP of engine units. A wave that fails ends the roll-out: what serves, goes on."""
    restarting = [c for c in changes if c.action is Action.RESTART]
    begun: set[str] = set()
    for wave in waves(progress.instances, changes):
        if progress.interrupted():
            return
        serving = [i for i in wave if any(c.instance == i.name for c in restarting)]
        stuck = progress.requests.take_away(serving) if serving else {}
        if stuck:
            left = progress.left(c for c in restarting if c.instance not in begun)
            _lose_hosts(progress, stuck)
            _end_rollout(progress, "requests could not be kept from it", left)
            return
        begun |= {i.name for i in wave}
        _wave(progress, wave, [c for c in changes if c.instance in {i.name for i in wave}])
        if serving and not progress.interrupted():
            _lose_hosts(progress, progress.requests.give_back(serving))
        failed = sorted({i.name for i in wave} & set(progress.lost_instances))
        left = progress.left(c for c in restarting if c.instance not in begun)
        if failed and left:
            _end_rollout(progress, f"{failed[0]}, restarted before it, is not ready", left)
            return


def _lose_hosts(progress: Progress, problems: Mapping[str, Problem]) -> None:
    for host, problem in problems.items():
        progress.lose_host(host, problem)


def _wave(progress: Progress, wave: Sequence[Instance], changes: Sequence[Change]) -> None:
    # every process of an instance is down before the first comes up: ranks of two generations never meet
    halts = [replace(c, action=Action.STOP, ops=c.ops[:-1]) for c in changes if len(c.ops) > 1]
    if halts:
        round_of(progress, by_host(halts))
    starts = [replace(c, ops=c.ops[-1:]) for c in progress.left(changes)]
    done = round_of(progress, by_host(starts))
    progress.done.extend(done)
    began = {c.instance for c in done if c.action is not Action.STOP} - set(progress.lost_instances)
    _await_ready(progress, [i for i in wave if i.name in began])
    if (
        not progress.interrupted()
    ):  # an interrupted run leaves what starts to itself: the next one waits for it
        _stop_lost(progress, wave, {c.instance for c in starts})


def await_started(progress: Progress) -> None:
    """Wait for the instances that this run has not started: one that was killed may have, a moment ago, and a
    router is asked for an answer before users are sent to it."""
    seen = {c.instance for c in progress.done}
    lost = progress.lost_instances
    _await_ready(progress, [i for i in progress.instances if i.name not in seen and i.name not in lost])


def _await_ready(progress: Progress, instances: Sequence[Instance]) -> None:
    if not instances:
        return
    with ThreadPoolExecutor(max_workers=len(instances)) as pool:
        verdicts = list(pool.map(lambda i: _verdict(progress, i), instances))
    for instance, problem in zip(instances, verdicts, strict=True):
        if problem:
            progress.lose_instance(instance.name, problem)


def _verdict(progress: Progress, instance: Instance) -> Problem | None:
    try:
        return progress.await_ready(instance)
    except LauncherError as error:
        return error.problems[0]


def _stop_lost(progress: Progress, wave: Iterable[Instance], begun: set[str]) -> None:
    """What did not become ready as a whole holds no GPU, port or memory on any of its hosts."""
    for instance in wave:
        if instance.name in progress.lost_instances and instance.name in begun:
            steps = (s for host in instance.hosts for s in progress.wanted.steps[host])
            own = [s for s in steps if s.instance == instance.name]
            stop_on(progress, {s.host: unit.life(s.want, Action.STOP)[0] for s in own})


def _end_rollout(progress: Progress, why: str, left: Sequence[Change]) -> None:
    for name in dict.fromkeys(c.instance for c in left):
        problem = Problem(
            what=f"{name} is not restarted and runs what it ran before",
            where=name,
            why=why,
            do=progress.next_command,
        )
        progress.problems.append(problem)
