"""absent: nothing at a path."""

from __future__ import annotations

from dataclasses import dataclass

from launcher.model.facts import Facts, Probe
from launcher.model.owned import Owned, path
from launcher.model.plan import Draft
from launcher.steps import attributes
from launcher.steps.attributes import AbsolutePath


@dataclass(frozen=True, slots=True)
class Params:
    """Whatever is at `path` goes; a folder with all that is in it."""

    path: AbsolutePath


def owns(want: Params) -> tuple[Owned, ...]:
    """The path."""
    return (path(want.path, "absent"),)


def probes(want: Params) -> tuple[Probe, ...]:
    """What is at the path."""
    return (Probe("path", (want.path,)),)


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """A REMOVE, unless nothing is there."""
    return attributes.gone(facts[probes(want)[0]], want.path)


def undone(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """Nothing: nobody knows any more what was there."""
    return ()
