"""link: a symbolic link and where it points."""

from __future__ import annotations

from dataclasses import dataclass

from launcher.model.facts import Facts, Probe
from launcher.model.owned import Owned, path
from launcher.model.plan import Action, Draft, Op
from launcher.steps import attributes
from launcher.steps.attributes import AbsolutePath


@dataclass(frozen=True, slots=True)
class Params:
    """A symbolic link at `path` with the text `target`."""

    path: AbsolutePath
    target: str


def owns(want: Params) -> tuple[Owned, ...]:
    """The path."""
    return (path(want.path, ("link", want)),)


def probes(want: Params) -> tuple[Probe, ...]:
    """What is at the path."""
    return (Probe("path", (want.path,)),)


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """CREATE, or UPDATE of target or type."""
    have = facts[probes(want)[0]]
    before, after = attributes.describe(have), f"link to {want.target}"
    if before == after:
        return ()
    action = Action.CREATE if before == "absent" else Action.UPDATE
    ops = (
        *attributes.clear(have, want.path, wanted_type="link"),
        Op("link", {"path": want.path, "target": want.target}),
    )
    return (Draft(action, want.path, before, after, ops),)


def undone(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """A REMOVE of the link."""
    return attributes.gone(facts[probes(want)[0]], want.path)
