"""file: a text at a path, with mode and owner."""

from __future__ import annotations

from dataclasses import dataclass, field

from launcher.model.facts import Facts, Probe
from launcher.model.plan import Draft
from launcher.steps.attributes import Mode


@dataclass(frozen=True, slots=True)
class Params:
    """A file whose content is exactly `content`."""

    path: str
    content: str = field(repr=False)
    """The text itself; resolve has rendered `template:` or read `file:` into it."""
    mode: Mode = "0644"
    owner: str = "root"
    group: str = "root"
    secret: bool = False
    """The content is never shown, diffed or journaled."""


def probes(want: Params) -> tuple[Probe, ...]:
    return ()


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    return ()
