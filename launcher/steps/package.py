"""package: distribution packages, at a version where one is pinned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.plan import Action, Draft, Op


@dataclass(frozen=True, slots=True)
class Params:
    """Packages that must be installed."""

    names: Mapping[str, str] | tuple[str, ...]
    """Package → version, empty for any; or just names."""
    mirror: str = ""
    """Folder of packages on the hosts to install from; empty: apt's own sources."""


def probes(want: Params) -> tuple[Probe, ...]:
    """The installed version of each."""
    return tuple(Probe("package", (name,)) for name in want.names)


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """One draft that names all packages that are absent or of another version: apt is asked once."""
    missing: dict[str, str] = {}
    before: list[str] = []
    action = Action.CREATE
    for name, version in _pins(want).items():
        have = facts[Probe("package", (name,))]
        found = None if isinstance(have, Unknown) else have["version"]
        if found is None or (version and found != version):
            missing[name] = version
            before.append(str(have) if isinstance(have, Unknown) else found or "absent")
            if found is not None:
                action = Action.UPDATE
    if not missing:
        return ()
    op = Op("package", {"names": missing, "from": want.mirror})
    return (
        Draft(
            action,
            f"package {', '.join(missing)}",
            ", ".join(dict.fromkeys(before)),
            ", ".join(dict.fromkeys(v or "installed" for v in missing.values())),
            (op,),
        ),
    )


def _pins(want: Params) -> Mapping[str, str]:
    if isinstance(want.names, Mapping):
        return want.names
    return dict.fromkeys(want.names, "")
