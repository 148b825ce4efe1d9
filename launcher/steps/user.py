"""user: a local account, its shell, home and groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.owned import Owned
from launcher.model.plan import Action, Draft, Op


@dataclass(frozen=True, slots=True)
class Params:
    """An account; an empty `shell` or `home` leaves what is there, or the system's default."""

    name: str
    system: bool = True
    shell: str = ""
    home: str = ""
    groups: tuple[str, ...] = ()
    """Supplementary groups it must be in; others it is in stay."""


def owns(want: Params) -> tuple[Owned, ...]:
    """The account."""
    return (Owned("user", want.name, want),)


def probes(want: Params) -> tuple[Probe, ...]:
    """The account as the host knows it."""
    return (Probe("user", (want.name,)),)


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """CREATE, or UPDATE of what differs."""
    have = facts[probes(want)[0]]
    op = Op(
        "user",
        {
            "name": want.name,
            "system": want.system,
            "shell": want.shell,
            "home": want.home,
            "groups": list(want.groups),
        },
    )
    subject = f"user {want.name}"
    if have is None or isinstance(have, Unknown):
        before = "absent" if have is None else str(have)
        return (Draft(Action.CREATE, subject, before, _text(want, {}), (op,)),)
    before, after = _text(want, have), _text(want, {})
    return () if before == after else (Draft(Action.UPDATE, subject, before, after, (op,)),)


def _text(want: Params, have: Mapping[str, Any]) -> str:
    """The parts that `want` names, as wanted, or as found where `have` says."""
    groups = [g for g in want.groups if g in have.get("groups", want.groups)]
    parts = (
        f"shell {have.get('shell', want.shell)}" if want.shell else "",
        f"home {have.get('home', want.home)}" if want.home else "",
        f"in {', '.join(groups) or 'no group'}" if want.groups else "",
    )
    return ", ".join(p for p in parts if p) or "present"


def undone(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """Nothing: files may belong to the account."""
    return ()
