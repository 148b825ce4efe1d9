"""sysctl: a kernel setting, in its file and, where the kernel lets us, in effect."""

from __future__ import annotations

from dataclasses import dataclass

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.owned import Owned, path
from launcher.model.plan import Action, Draft, Op
from launcher.steps.attributes import AbsolutePath


@dataclass(frozen=True, slots=True)
class Params:
    """One `key = value` line of `file` (in /etc/sysctl.d), and the running kernel's value."""

    file: AbsolutePath
    key: str
    value: str


def owns(want: Params) -> tuple[Owned, ...]:
    """The key, and one line of the file, which may have others of other steps."""
    key = Owned("kernel setting", want.key.replace("/", "."), (want.file, _value(want.value)))
    return (key, path(want.file, "lines of kernel settings", shared=True))


def probes(want: Params) -> tuple[Probe, ...]:
    """The file's value and the kernel's."""
    return (Probe("sysctl", (want.file, want.key)),)


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """CREATE of the line, or UPDATE of it or of the value in effect."""
    have = facts[probes(want)[0]]
    op = Op("sysctl", {"file": want.file, "key": want.key, "value": want.value})
    if isinstance(have, Unknown):
        return (Draft(Action.UPDATE, want.key, str(have), want.value, (op,)),)
    written, running = _value(have["line"]), _value(have["value"])
    wish = _value(want.value)
    # a kernel that refuses writes (a container's, a locked one) cannot be brought to the value
    in_effect = running == wish or not have["writable"]
    if written == wish and in_effect:
        return ()
    action = Action.CREATE if written is None else Action.UPDATE
    before = f"{written or 'absent'} in the file, {running or 'unknown'} in effect"
    return (Draft(action, want.key, before, want.value, (op,)),)


def undone(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """A REMOVE of the line. What is in effect stays until the host boots: nobody knows what it was before."""
    have = facts[probes(want)[0]]
    if not isinstance(have, Unknown) and have["line"] is None:
        return ()
    before = str(have) if isinstance(have, Unknown) else f"{_value(have['line'])} in the file"
    op = Op("sysctl", {"file": want.file, "key": want.key, "value": None})
    return (Draft(Action.REMOVE, want.key, before, "absent; the kernel's own from the next boot on", (op,)),)


def _value(text: str | None) -> str | None:
    """The value of a line or of the kernel, with the blanks between its words made equal."""
    return None if text is None else " ".join(text.rpartition("=")[2].split())
