"""Orphans: units of ours on a host that no step names any more. Nothing without our mark is ever touched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.plan import Action, Change, Op
from launcher.model.role import Step
from launcher.steps import unit

UNITS_OF_OURS = Probe("units", ("dsv32-*.service",))
GUARDS = "dsv32-guard-"
JOBS = "dsv32-job-"
"""Units of long work: they end by themselves."""


def orphans(host: str, steps: Iterable[Step], facts: Facts) -> Iterator[Change]:
    """One REMOVE for each: before anything new starts in the engine stage, for it may hold GPUs and ports."""
    names = facts[UNITS_OF_OURS]
    if isinstance(names, Unknown):
        return
    wanted = {step.want.name for step in steps if isinstance(step.want, unit.Params)}
    # a guard first: it would start again what is stopped
    for name in sorted(names, key=lambda name: (not name.startswith(GUARDS), name)):
        if name in wanted or name.startswith(JOBS):
            continue
        yield Change(
            host=host,
            stage="engine",
            step=f"orphan[{name}]",
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
