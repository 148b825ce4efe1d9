"""purged: distribution packages that must not be there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import MinLen

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.owned import Owned
from launcher.model.plan import Action, Draft, Op


@dataclass(frozen=True, slots=True)
class Params:
    """None of these is installed. What depends on them goes with them, so name what nobody else may need."""

    names: Annotated[tuple[str, ...], MinLen(1)]


def owns(want: Params) -> tuple[Owned, ...]:
    """Each package."""
    return tuple(Owned("package", name, "purged", shared=True) for name in want.names)


def probes(want: Params) -> tuple[Probe, ...]:
    """The installed version of each."""
    return tuple(Probe("package", (name,)) for name in want.names)


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """One REMOVE of all that are there; where that cannot be told, of those, too."""
    found: dict[str, str] = {}
    for probe in probes(want):
        have = facts[probe]
        if isinstance(have, Unknown):
            found[probe.args[0]] = str(have)
        elif have["version"]:
            found[probe.args[0]] = have["version"]
    if not found:
        return ()
    op = Op("purge", {"names": list(found)})
    before = ", ".join(dict.fromkeys(found.values()))
    return (Draft(Action.REMOVE, f"package {', '.join(found)}", before, "absent", (op,)),)


def undone(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """Nothing: whoever wants the packages back installs them."""
    return ()
