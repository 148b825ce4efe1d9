"""Mode, owner and group of a path: what was found, what is wanted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Protocol, TypeAlias

from annotated_types import Predicate

from launcher.model.facts import Unknown
from launcher.model.plan import Action, Draft, Op


def is_mode(text: str) -> bool:
    """Four octal digits: `0644`."""
    return re.fullmatch("[0-7]{4}", text) is not None


def is_path(text: str) -> bool:
    """An absolute path: `/etc/x.conf`."""
    return text.startswith("/") and text.isprintable() and not {"", ".", ".."} & {*text[1:].split("/")}


Mode: TypeAlias = Annotated[str, Predicate(is_mode)]
AbsolutePath: TypeAlias = Annotated[str, Predicate(is_path)]


class Owned(Protocol):
    """A wanted path with mode and owner."""

    @property
    def path(self) -> str:
        """Absolute."""

    @property
    def mode(self) -> str:
        """Four octal digits."""

    @property
    def owner(self) -> str:
        """A user's name."""

    @property
    def group(self) -> str:
        """A group's name."""


def wanted(want: Owned) -> str:
    """`0644 root:root`, as asked for."""
    return f"{want.mode} {want.owner}:{want.group}"


def found(have: Mapping[str, Any]) -> str:
    """`0644 root:root`, as found."""
    return f"{have['mode']} {have['owner']}:{have['group']}"


def arguments(want: Owned) -> dict[str, str]:
    """The arguments of the ops that set them."""
    return {"path": want.path, "mode": want.mode, "owner": want.owner, "group": want.group}


def describe(have: Mapping[str, Any] | Unknown) -> str:
    """What is at a path, in a few words: `absent`, `folder 0755 root:root`, `link to /srv`."""
    if isinstance(have, Unknown):
        return str(have)
    match have["type"]:
        case "absent":
            return "absent"
        case "link":
            return f"link to {have['target']}"
        case "file" | "folder" as kind:
            return f"{kind} {found(have)}"
        case _:
            return "neither file nor folder"


def gone(have: Mapping[str, Any] | Unknown, path: str) -> tuple[Draft, ...]:
    """The REMOVE of whatever is at `path`; () where nothing is."""
    before = describe(have)
    if before == "absent":
        return ()
    return (Draft(Action.REMOVE, path, before, "absent", (Op("remove", {"path": path}),)),)


def clear(have: Mapping[str, Any] | Unknown, path: str, *, wanted_type: str) -> tuple[Op, ...]:
    """The op that takes away what is at `path` if it is of another type than the wanted one."""
    if isinstance(have, Unknown) or have["type"] in ("absent", wanted_type):
        return ()
    return (Op("remove", {"path": path}),)
