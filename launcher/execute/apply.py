"""Apply: the moves of a plan, one after the other; what was not in the plan stops it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from launcher.execute.boots import boot
from launcher.execute.hands import Hands
from launcher.execute.hosts import by_host, round_of, stop_on
from launcher.execute.observe import Observed, observe
from launcher.execute.orphans import ORPHAN
from launcher.execute.outcome import Outcome
from launcher.execute.planner import make_plan, started_again
from launcher.execute.progress import AwaitReady, Progress, Traffic, Untouched, await_all
from launcher.execute.surprise import remaining, same, surprises, unkept
from launcher.model.deployment import Instance
from launcher.model.plan import Action, Change, Plan
from launcher.model.problem import PlanRefusedError
from launcher.model.role import STAGES, Stage
from launcher.model.rollout import Move
from launcher.model.run import Event, Listener
from launcher.model.wish import Wanted
from launcher.steps import unit


def apply(
    fleet: Hands,
    wanted: Wanted,
    plan: Plan,
    listener: Listener,
    *,
    await_ready: AwaitReady,
    interrupted: Callable[[], bool] = lambda: False,
    traffic: Traffic | None = None,
) -> Outcome:
    """Make the plan's changes, move by move. `await_ready` waits for an instance that was just started, and
    `traffic` keeps requests from the instances that a move drains.

    Raises PlanRefusedError when a host turns out to need what the plan does not show. `interrupted` is asked
    before each command to a host: no new one is sent once it says yes.
    """
    progress = Progress(fleet, wanted, plan, listener, await_ready, interrupted, traffic or Untouched())
    for host, problem in plan.unreached.items():
        progress.lose_host(host, problem)
    for number, move in enumerate(plan.rollout.moves):
        if interrupted():
            break
        if not progress.may_begin(move):
            continue
        progress.begin(number)
        made = not progress.blocked(move) and _make_move(progress, move, first=number == 0)
        if not made or progress.spoilt(move):
            progress.fail(move)
    if not interrupted() and not progress.failed:
        progress.lose_hosts(progress.traffic.drain(None))
    if progress.done and not interrupted():
        _look_back(progress)
    return progress.outcome()


def _make_move(progress: Progress, move: Move, *, first: bool) -> bool:
    """Drain, stop, change, boot, start, wait until ready, ask. False where it could not go on. What is lost
    on the way is noted in `progress`."""
    if "router" in move.stages:
        _await_started(progress)
        if problems := progress.below_minimum():
            progress.problems.extend(problems)
            return False
    stuck = progress.traffic.drain(move)
    progress.lose_hosts(stuck)
    if stuck or progress.interrupted():
        return not stuck
    if move.stops and not _stop(progress, move):
        return False
    for stage in move.stages:
        if progress.interrupted():
            return True
        planned = progress.plan.stage(stage)
        if any(c.host in move.hosts for c in planned):
            fresh = first and stage == move.stages[0] and not (move.stops or move.drained)
            needed = planned if fresh else _needed(progress, move, stage)
            _make_stage(progress, move, stage, progress.left(needed))
    if progress.interrupted() or any(name in progress.lost_instances for name in move.instances):
        return True
    if move.canary and (problem := progress.traffic.check(move)):
        progress.lose_all(move.instances, problem)
    return True


def _make_stage(progress: Progress, move: Move, stage: Stage, changes: tuple[Change, ...]) -> None:
    """One stage's changes on the hosts of a move."""
    mine = [c for c in changes if move.makes(c.host, c.stage, c.instance)]
    if not mine:
        return
    progress.listener(Event("stage-started", stage, subject=stage))
    steps = [c for c in mine if not c.instance]
    boots = [c for c in steps if c.action is Action.REBOOT]
    leaving = [c for c in steps if stage == "router" and c.step.startswith(ORPHAN)]
    rest = [c for c in steps if c not in boots and c not in leaving]
    progress.done.extend(round_of(progress, by_host(rest)))
    if leaving and not progress.lost_hosts.keys() & ({c.host for c in steps} | progress.wanted.routing_hosts):
        # engines go once no router sends them requests any more; one that could not be changed still may
        progress.done.extend(round_of(progress, by_host(leaving)))
    boot(progress, progress.left(boots))
    _start(progress, move, progress.left(c for c in mine if c.instance))
    progress.listener(Event("stage-done", stage, subject=stage))


def _start(progress: Progress, move: Move, changes: Sequence[Change]) -> None:
    """START, RESTART and STOP of a move's instances, each as a whole."""
    if not changes or progress.interrupted():
        return
    wave = [i for i in progress.instances if i.name in move.instances]
    # every process of an instance is down before the first comes up: ranks of two generations never meet
    halts = [replace(c, action=Action.STOP, ops=c.ops[:-1]) for c in changes if len(c.ops) > 1]
    if halts and not move.stops:
        round_of(progress, by_host(halts))
    starts = [replace(c, ops=c.ops[-1:]) for c in progress.left(changes)]
    done = round_of(progress, by_host(starts))
    progress.done.extend(done)
    began = {c.instance for c in done if c.action is not Action.STOP} - set(progress.lost_instances)
    _await_ready(progress, [i for i in wave if i.name in began])
    if not progress.interrupted():  # what an interrupted run has started is left for the next one to wait for
        _stop_lost(progress, wave, {c.instance for c in starts})


def _stop(progress: Progress, move: Move) -> bool:
    """Stop a move's instances on all their hosts."""
    ops = {
        host: [op for s in own if s.instance in move.instances for op in unit.life(s.want, Action.STOP)]
        for host, own in progress.wanted.steps.items()
        if host in move.hosts
    }
    problems = stop_on(progress, {host: own for host, own in ops.items() if own})
    progress.lose_hosts(problems)
    return not problems


def _stop_lost(progress: Progress, wave: Iterable[Instance], begun: set[str]) -> None:
    """An instance that did not become ready as a whole holds no GPU, port or memory on any of its hosts."""
    for instance in wave:
        if instance.name in progress.lost_instances and instance.name in begun:
            steps = (s for host in instance.hosts for s in progress.wanted.steps[host])
            own = [s for s in steps if s.instance == instance.name]
            stop_on(progress, {s.host: unit.life(s.want, Action.STOP)[:1] for s in own})


def _await_started(progress: Progress) -> None:
    """Wait for the instances that this run has not started: one that was killed may have, a moment ago, and a
    router is asked for an answer before users are sent to it."""
    seen = {c.instance for c in progress.done}
    lost = progress.lost_instances
    _await_ready(progress, [i for i in progress.instances if i.name not in seen and i.name not in lost])


def _await_ready(progress: Progress, instances: Sequence[Instance]) -> None:
    for instance, problem in await_all(instances, progress.await_ready):
        if problem:
            progress.lose_instance(instance.name, problem)


def _needed(progress: Progress, move: Move, stage: Stage) -> tuple[Change, ...]:
    """The stage's changes on the hosts of a move, by what these say now: fewer than planned, never others."""
    planned = progress.plan.changes
    own = dict.fromkeys(c.host for c in planned if c.host in move.hosts)
    hosts = [host for host in own if host not in progress.lost_hosts]
    seen = observe(progress.fleet, progress.wanted, hosts)
    progress.lose_hosts(seen.problems)
    again = started_again(progress.wanted, seen, [c for c in planned if c.forced and c.stage == stage])
    if all(c.forced for c in planned):  # restarts alone: what else differs there is none of their business
        return tuple(again)
    now = make_plan(progress.wanted, Observed(seen.facts, progress.lost_hosts))
    # while something is drained, routers are as no plan wants them
    settled = [c for c in now.changes if not (move.drained and c.stage == "router")]
    if unforeseen := surprises(planned, replace(now, changes=tuple(settled))):
        raise PlanRefusedError(*unforeseen)
    progress.lose_hosts(unkept(progress.done, now, STAGES[: STAGES.index(stage)]))
    needed = remaining(planned, now, stage)
    keys = {same(c) for c in needed}
    needed = (*needed, *(c for c in again if same(c) not in keys))
    keys = {same(c) for c in (*needed, *progress.done)}
    mine = (c for c in progress.plan.stage(stage) if move.makes(c.host, stage, c.instance))
    progress.done.extend(c for c in progress.left(mine) if same(c) not in keys)
    return needed


def _look_back(progress: Progress) -> None:
    """What was applied last must hold too: a unit that ended as soon as it had started, for one."""
    hosts = dict.fromkeys(c.host for c in progress.done)
    seen = observe(progress.fleet, progress.wanted, [h for h in hosts if h not in progress.lost_hosts])
    now = make_plan(progress.wanted, Observed(seen.facts, progress.lost_hosts))
    progress.lose_hosts({**unkept(progress.done, now, STAGES), **seen.problems})
