"""package: distribution packages, at a version where one is pinned, and kept there where they are held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.owned import Owned
from launcher.model.plan import Action, Draft, Op


@dataclass(frozen=True, slots=True)
class Params:
    """Packages that must be installed, in one transaction."""

    names: Mapping[str, str] | tuple[str, ...] | str
    """Package → version, empty for any; or a list or words of `package` or `package=version`."""
    mirror: str = ""
    """Folder of packages on the hosts to install from; empty: apt's own sources."""
    held: bool = False
    """No upgrade but ours moves them (`apt-mark hold`)."""


def owns(want: Params) -> tuple[Owned, ...]:
    """Each package, and its version where one is wanted. Several roles may need one."""
    pinned = pins(want.names)
    return (
        *(Owned("package", name, "installed", shared=True) for name in pinned),
        *(Owned("version of package", n, version, shared=True) for n, version in pinned.items() if version),
    )


def probes(want: Params) -> tuple[Probe, ...]:
    """The installed version of each, and whether it is held."""
    return tuple(Probe("package", (name,)) for name in pins(want.names))


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """One draft that names all packages that are absent or of another version: apt is asked once. Another
    one for those that are only not held."""
    missing: dict[str, str] = {}
    free: list[str] = []
    before: list[str] = []
    action = Action.CREATE
    for name, version in pins(want.names).items():
        have = facts[Probe("package", (name,))]
        found = None if isinstance(have, Unknown) else have["version"]
        if found is None or (version and found != version):
            missing[name] = version
            before.append(str(have) if isinstance(have, Unknown) else found or "absent")
            if found is not None:
                action = Action.UPDATE
        elif want.held and not have.get("held"):
            free.append(name)
    return (*_installed(want, missing, before, action), *_held(free))


def _installed(
    want: Params, missing: Mapping[str, str], before: list[str], action: Action
) -> Iterator[Draft]:
    if not missing:
        return
    op = Op("package", {"names": missing, "from": want.mirror, **({"hold": True} if want.held else {})})
    after = ", ".join(dict.fromkeys(v or "installed" for v in missing.values()))
    yield Draft(action, f"package {', '.join(missing)}", ", ".join(dict.fromkeys(before)), after, (op,))


def _held(free: list[str]) -> Iterator[Draft]:
    if free:
        op = Op("hold", {"names": free})
        yield Draft(Action.UPDATE, f"package {', '.join(free)}", "may be upgraded", "held", (op,))


def undone(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """One REMOVE of all that are there, with what only they needed."""
    found = {n: have for n, have in _found(want, facts).items() if have}
    if not found:
        return ()
    op = Op("purge", {"names": list(found), "needless": True})
    before = ", ".join(dict.fromkeys(found.values()))
    return (Draft(Action.REMOVE, f"package {', '.join(found)}", before, "absent", (op,)),)


def freed(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """One UPDATE of all that are held: they stay, and others may upgrade them again."""
    held = [name for name in pins(want.names) if _is_held(facts[Probe("package", (name,))])]
    if not held:
        return ()
    op = Op("hold", {"names": held, "free": True})
    return (Draft(Action.UPDATE, f"package {', '.join(held)}", "held", "may be upgraded", (op,)),)


def _found(want: Params, facts: Facts) -> Mapping[str, str | None]:
    """Package → its version, or why that is not known; None where it is not installed."""
    answers = {name: facts[Probe("package", (name,))] for name in pins(want.names)}
    return {n: str(a) if isinstance(a, Unknown) else a["version"] for n, a in answers.items()}


def _is_held(have: Any) -> bool:
    return not isinstance(have, Unknown) and bool(have.get("held"))


def pins(names: Mapping[str, str] | tuple[str, ...] | str) -> Mapping[str, str]:
    """Package → version or nothing, however they were written."""
    if isinstance(names, Mapping):
        return names
    words = names.split() if isinstance(names, str) else names
    return {name: version for name, _, version in (word.partition("=") for word in words)}
