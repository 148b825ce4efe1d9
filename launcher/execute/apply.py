"""Apply: a plan's changes, stage by stage; what was not in the plan stops it."""

from __future__ import annotations

from collections.abc import Callable

from launcher.execute.boots import boot
from launcher.execute.hands import Hands
from launcher.execute.hosts import by_host, round_of
from launcher.execute.instances import await_started, start_instances
from launcher.execute.observe import Observed, observe
from launcher.execute.orphans import ORPHAN
from launcher.execute.outcome import Outcome
from launcher.execute.planner import make_plan
from launcher.execute.progress import Await, LeftAlone, Progress, Requests
from launcher.execute.surprise import remaining, same, surprises, unkept
from launcher.model.plan import Action, Change, Plan
from launcher.model.problem import PlanRefusedError
from launcher.model.role import STAGES, Stage
from launcher.model.run import Event, Listener
from launcher.model.wish import Wanted


def apply(
    fleet: Hands,
    wanted: Wanted,
    plan: Plan,
    listener: Listener,
    *,
    start_instance: Await,
    interrupted: Callable[[], bool] = lambda: False,
    requests: Requests | None = None,
    reboots: bool = True,
) -> Outcome:
    """Make it so. Stages are barriers; `start_instance` waits for an instance that was just started, and
    `requests` keeps requests from those that serve and restart. Without `reboots` hosts that need one are
    told of, and nothing of a later stage is done there.

    Raises PlanRefusedError when a host turns out to need what the plan does not show. `interrupted` is asked
    before each request: no new one is sent once it says yes.
    """
    kept = requests or LeftAlone()
    progress = Progress(fleet, wanted, plan, listener, start_instance, interrupted, kept, reboots)
    for host, problem in plan.unreached.items():
        progress.lose_host(host, problem)
    for number, stage in enumerate(plan.stages):
        if interrupted() or (stage == "router" and _too_few(progress)):
            break
        changes = plan.stage(stage) if number == 0 else _still_needed(progress, stage)
        _run_stage(progress, stage, progress.left(changes))
    if progress.done and not interrupted():
        _look_back(progress)
    return progress.outcome()


def _look_back(progress: Progress) -> None:
    """What was applied last must hold too: a unit that ended as soon as it had started, for one."""
    seen = observe(progress.fleet, progress.wanted, _changed_hosts(progress))
    now = make_plan(progress.wanted, Observed(seen.facts, progress.lost_hosts))
    for host, problem in {**unkept(progress.done, now, STAGES), **seen.problems}.items():
        progress.lose_host(host, problem)


def _changed_hosts(progress: Progress) -> list[str]:
    planned = dict.fromkeys(c.host for c in progress.plan.changes)
    return [host for host in planned if host not in progress.lost_hosts]


def _too_few(progress: Progress) -> bool:
    found = progress.below_minimum()
    progress.problems.extend(found)
    return bool(found)


def _run_stage(progress: Progress, stage: Stage, changes: tuple[Change, ...]) -> None:
    if not changes:
        return
    progress.listener(Event("stage-started", stage, subject=stage))
    if stage == "router":
        await_started(progress)
        if _too_few(progress):
            return
    boots = [c for c in changes if c.action is Action.REBOOT]
    steps = [c for c in changes if not c.instance and c not in boots]
    leaving = [c for c in steps if stage == "router" and c.step.startswith(ORPHAN)]
    progress.done.extend(round_of(progress, by_host(c for c in steps if c not in leaving)))
    if leaving and not progress.lost_hosts.keys() & {c.host for c in changes}:
        # what routers have forgotten by now; where one could not be changed, it may still be asked
        progress.done.extend(round_of(progress, by_host(leaving)))
    boot(progress, progress.left(boots))
    start_instances(progress, progress.left(c for c in changes if c.instance))
    progress.listener(Event("stage-done", stage, subject=stage))


def _still_needed(progress: Progress, stage: Stage) -> tuple[Change, ...]:
    """The stage's changes, recomputed from what its hosts say now: fewer than planned, never others."""
    planned = progress.plan.changes
    seen = observe(progress.fleet, progress.wanted, _changed_hosts(progress))
    for host, problem in seen.problems.items():
        progress.lose_host(host, problem)
    now = make_plan(progress.wanted, Observed(seen.facts, progress.lost_hosts))
    unforeseen = surprises(planned, now)
    if unforeseen:
        raise PlanRefusedError(*unforeseen)
    for host, problem in unkept(progress.done, now, STAGES[: STAGES.index(stage)]).items():
        progress.lose_host(host, problem)
    needed = remaining(planned, now, stage)
    keys = {same(c) for c in needed}
    progress.done.extend(c for c in progress.left(progress.plan.stage(stage)) if same(c) not in keys)
    return needed
