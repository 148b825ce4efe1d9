"""Halting: what is not changed while an engine runs on the host, such as its driver; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from launcher.model.plan import Action, Change, Plan
from launcher.model.wish import Wanted


def halting(wanted: Wanted, planned: Plan) -> Mapping[str, tuple[Change, ...]]:
    """Host → those of its changes for which engines stop: a reboot, and all of roles that say `halts`."""
    roles = {role.name for role in wanted.wish.roles if role.halts}
    found: dict[str, tuple[Change, ...]] = {}
    for change in planned.changes:
        if change.action is Action.REBOOT or change.step.partition("/")[0] in roles:
            found[change.host] = (*found.get(change.host, ()), change)
    return found


def order_of(waves: Collection[Collection[str]], routing: Collection[str]) -> Iterator[str]:
    """Who goes when, a line each, for whoever approves."""
    for number, names in enumerate(waves):
        head = "first" if number == 0 else "then"
        meanwhile = "; the others serve meanwhile" if len(waves) > 1 else ""
        yield f"{head} {', '.join(names)}: no requests, stopped, hosts changed and booted, started{meanwhile}"
    for host in routing:
        yield f"then {host}, which routes: what users have under way there is cut off if it boots"


def reasons(changes: Collection[Change]) -> str:
    """`nvidia-driver/packages, nvidia-driver/version`."""
    return ", ".join(dict.fromkeys(c.step for c in changes))
