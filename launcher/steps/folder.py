"""folder: a folder at a path, with mode and owner."""

from __future__ import annotations

from dataclasses import dataclass

from launcher.model.facts import Facts, Probe
from launcher.model.owned import Owned, path
from launcher.model.plan import Action, Draft, Op
from launcher.steps import attributes
from launcher.steps.attributes import AbsolutePath, Mode


@dataclass(frozen=True, slots=True)
class Params:
    """A folder; what is in it is not looked at."""

    path: AbsolutePath
    mode: Mode = "0755"
    owner: str = "root"
    group: str = "root"


def owns(want: Params) -> tuple[Owned, ...]:
    """The path; not what is in it."""
    return (path(want.path, ("folder", want), shared=True),)


def probes(want: Params) -> tuple[Probe, ...]:
    """What is at the path."""
    return (Probe("path", (want.path,)),)


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """CREATE, or UPDATE of mode, owner or type."""
    have = facts[probes(want)[0]]
    before, after = attributes.describe(have), f"folder {attributes.wanted(want)}"
    if before == after:
        return ()
    action = Action.CREATE if before == "absent" else Action.UPDATE
    ops = (
        *attributes.clear(have, want.path, wanted_type="folder"),
        Op("folder", attributes.arguments(want)),
    )
    return (Draft(action, want.path, before, after, ops),)


def undone(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """Nothing: what has come to lie in a folder is not ours to take away."""
    return ()
