"""Boots: hosts whose running kernel shows something else are booted anew, or told of."""

from __future__ import annotations

from collections.abc import Iterable

from launcher.execute.observe import observe
from launcher.execute.planner import make_plan
from launcher.execute.progress import Progress
from launcher.execute.surprise import same
from launcher.model.plan import Action, Change
from launcher.model.problem import Problem
from launcher.model.run import Event


def boot(progress: Progress, changes: Iterable[Change]) -> None:
    """Each of these changes' hosts once, all at the same time, where its kernel does not show it by now.

    A host that does not come back is lost, as is one that must wait because the run is not to reboot any.
    """
    planned = tuple(changes)
    waiting = _still_waiting(progress, planned)
    progress.done.extend(c for c in planned if c.host not in waiting and c.host not in progress.lost_hosts)
    if not waiting or progress.interrupted():
        return
    if not progress.plan.rollout.reboots:
        for host, needs in waiting.items():
            progress.lose_host(host, _pending(progress, host, needs))
        return
    ended = progress.fleet.map(tuple(waiting), lambda host: _boot(progress, host, waiting[host]))
    for host, problem in ended.items():
        if problem:
            progress.lose_host(host, problem)
            continue
        progress.done.extend(c for c in planned if c.host == host)
        for change in waiting[host]:
            progress.listener(_event(change))


def _still_waiting(progress: Progress, planned: tuple[Change, ...]) -> dict[str, list[Change]]:
    """Host → what its kernel is to show and does not; what was planned, and no more."""
    keys = {same(c) for c in planned}
    seen = observe(progress.fleet, progress.wanted, dict.fromkeys(c.host for c in planned))
    for host, problem in seen.problems.items():
        progress.lose_host(host, problem)
    found: dict[str, list[Change]] = {}
    for change in make_plan(progress.wanted, seen).changes:
        if change.action is Action.REBOOT and same(change) in keys:
            found.setdefault(change.host, []).append(change)
    return found


def _boot(progress: Progress, host: str, needs: Iterable[Change]) -> Problem | None:
    within_s = max(float(op.args["within_s"]) for change in needs for op in change.ops)
    return progress.fleet.reboot(host, listener=progress.listener, within_s=within_s)


def _pending(progress: Progress, host: str, needs: Iterable[Change]) -> Problem:
    what = "; ".join(f"{c.subject} shows {c.before}, wanted {c.after}" for c in needs)
    return Problem(
        what=f"{host} waits for a reboot",
        where=host,
        why=what,
        do=f"dsv32-launch up {progress.wanted.wish.inventory.path}, without --no-reboot",
    )


def _event(change: Change) -> Event:
    data = {"action": change.action.name, "stage": change.stage, "after": change.after}
    return Event("change-done", change.subject, host=change.host, subject=change.step, data=data)
