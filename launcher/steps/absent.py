"""absent: nothing at a path."""

from __future__ import annotations

from dataclasses import dataclass

from launcher.model.facts import Facts, Probe
from launcher.model.plan import Action, Draft, Op
from launcher.steps import attributes
from launcher.steps.attributes import AbsolutePath


@dataclass(frozen=True, slots=True)
class Params:
    """Whatever is at `path` goes; a folder with all that is in it."""

    path: AbsolutePath


def probes(want: Params) -> tuple[Probe, ...]:
    """What is at the path."""
    return (Probe("path", (want.path,)),)


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """A REMOVE, unless nothing is there."""
    before = attributes.describe(facts[probes(want)[0]])
    if before == "absent":
        return ()
    return (Draft(Action.REMOVE, want.path, before, "absent", (Op("remove", {"path": want.path}),)),)
