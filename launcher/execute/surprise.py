"""Surprise: what a plan did not foresee, found between stages or when a saved plan is used; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from launcher.execute.planner import LIFE
from launcher.model.plan import Change, Plan
from launcher.model.problem import Problem
from launcher.model.role import Stage


def same(change: Change) -> tuple[str, ...]:
    """What makes two changes the same: a unit to be restarted may meanwhile have stopped by itself."""
    if change.action in LIFE:
        return (change.host, change.step, "life", change.after)
    return change.key()


def remaining(planned: Iterable[Change], now: Plan, stage: Stage) -> tuple[Change, ...]:
    """The recomputed changes of `stage` that were planned: a plan may shrink on its way."""
    keys = {same(c) for c in planned}
    return tuple(c for c in now.stage(stage) if same(c) in keys)


def surprises(planned: Iterable[Change], now: Plan) -> tuple[Problem, ...]:
    """A Problem for each change, of whatever stage, that nobody has seen in the plan."""
    keys = {same(c) for c in planned}
    return tuple(
        Problem(
            what=f"{c.subject} was planned to stay as it is and is now {c.before}, wanted {c.after}",
            where=f"{c.host}, step {c.step}",
            why="it changed after the plan was made, or an earlier step of this run changed it",
            do="dsv32-launch plan, and look at what it shows",
        )
        for c in now.changes
        if same(c) not in keys
    )


def unkept(applied: Iterable[Change], now: Plan, stages: Collection[Stage]) -> Mapping[str, Problem]:
    """Host → a step of these stages that was applied and still differs; health judges instances."""
    keys = {same(c) for c in applied}
    return {
        c.host: Problem(
            what=f"{c.subject} was applied and is still {c.before}, wanted {c.after}",
            where=f"{c.host}, step {c.step}",
            why="the step's own probe says so after its ops ended well",
            do=f"ssh {c.host} and look, or correct the step: {c.because}",
        )
        for c in reversed(now.changes)
        if c.stage in stages and not c.instance and same(c) in keys
    }
