"""boot: what the running kernel shows after a boot with what is installed; a reboot where it does not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Predicate

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.owned import Owned
from launcher.model.plan import Action, Draft, Op
from launcher.steps.attributes import AbsolutePath

BYTES = 16384
"""What a driver tells of its parameters is some 1.3 kB (580.159.04)."""


def has_one_group(pattern: str) -> bool:
    """A regular expression that says with one group which part is the value."""
    try:
        return re.compile(pattern).groups == 1
    except re.error:
        return False


@dataclass(frozen=True, slots=True)
class Params:
    """What `read` finds in `path`, a file of /proc or /sys, is `equals`.

    The kernel is asked, never the file that it was told by: what was written since the last boot is not in
    effect, whatever it says.
    """

    path: AbsolutePath
    read: Annotated[str, Predicate(has_one_group)]
    """A regular expression with one group; the first line that it matches counts."""
    equals: str
    within_s: Annotated[int, Ge(1)] = 1500
    """From the order to reboot until the host has started everything; runbooks wait as long."""


def owns(want: Params) -> tuple[Owned, ...]:
    """What the kernel shows: each boot can bring it to one value only."""
    return (Owned("value of the kernel", f"{want.path}: {want.read}", want.equals, shared=True),)


def probes(want: Params) -> tuple[Probe, ...]:
    """The kernel's file."""
    return (Probe("read", (want.path, BYTES)),)


def undone(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """A REBOOT while the kernel still shows it."""
    if changes(want, facts):
        return ()
    op = Op("reboot", {"within_s": want.within_s})
    return (Draft(Action.REBOOT, want.path, f"{want.equals} in the running kernel", "without it", (op,)),)


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """A REBOOT, unless the kernel shows it already."""
    have = facts[probes(want)[0]]
    if isinstance(have, Unknown):
        found = str(have)
    else:
        match = re.search(want.read, have.get("text", ""), re.MULTILINE)
        found = match[1] if match else "absent"
    if found == want.equals:
        return ()
    op = Op("reboot", {"within_s": want.within_s})
    return (Draft(Action.REBOOT, want.path, f"{found} in the running kernel", want.equals, (op,)),)
