"""unit: a systemd unit, whether it runs and starts at boot, and the release that it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from launcher.model.facts import Facts, Probe
from launcher.model.plan import Draft


@dataclass(frozen=True, slots=True)
class Params:
    """A unit of ours (`content`), or one that some package brought (no `content`)."""

    name: str
    """With its suffix: `dsv32-decode-0.service`."""
    content: str = ""
    """The unit's text; resolve has rendered `template:` or read `file:` into it."""
    state: Literal["started", "stopped"] = "started"
    enabled: bool = False
    """Starts at boot."""
    depends: str = ""
    """Digest over the content of the steps named in `restart_on`; another one makes the unit restart."""


def probes(want: Params) -> tuple[Probe, ...]:
    return ()


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    return ()
