"""Orphans: units of ours on a host that no step names any more. Nothing without our mark is ever touched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.plan import Action, Change, Op
from launcher.model.role import Stage, Step
from launcher.steps import turns, unit

UNITS_OF_OURS = Probe("units", ("dsv32-*.service",))
ORPHAN = "orphan"
"""What the step of such a change is called."""
GUARDS = "dsv32-guard-"
JOBS = "dsv32-job-"
"""Units of long work: they end by themselves."""


def orphans(host: str, steps: Iterable[Step], facts: Facts) -> Iterator[Change]:
    """One REMOVE for each. Where an engine is to run, it goes before anything new starts in the engine stage:
    it may hold GPUs and ports. Elsewhere it goes when routers have forgotten it: it may still answer."""
    steps = tuple(steps)
    stage: Stage = "engine" if any(step.instance for step in steps) else "router"
    names = facts[UNITS_OF_OURS]
    if isinstance(names, Unknown):
        return
    wanted = {u.name for step in steps for u in turns.units_of(step.want)}
    # a guard first: it would start again what is stopped
    for name in sorted(names, key=lambda name: (not name.startswith(GUARDS), name)):
        if name in wanted or name.startswith(JOBS):
            continue
        yield Change(
            host=host,
            stage=stage,
            step=f"{ORPHAN}[{name}]",
            action=Action.REMOVE,
            subject=name,
            before="there",
            after="stopped and absent",
            because="no step of this inventory names it",
            ops=(
                Op("units", {"stop": [name], "disable": [name]}),
                Op("remove", {"path": f"{unit.FOLDER}/{name}"}),
                Op("units", {"reload": True}),
            ),
        )
