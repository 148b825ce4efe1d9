"""built: a file, and what a program builds out of it, such as the initramfs or GRUB's menu."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

from annotated_types import Ge, MinLen

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.owned import Owned, path
from launcher.model.plan import Action, Draft, Op
from launcher.steps import file
from launcher.steps.attributes import AbsolutePath, Mode

# a product that is not there is nobody's to build; a shell may compare seconds only, so equal is built
IS_BUILT = 'into=$(echo "$2" | sed "s|{kernel}|$(uname -r)|"); [ ! -e "$into" ] || [ ! "$1" -nt "$into" ]'
LOOK_WITHIN_S = 20


@dataclass(frozen=True, slots=True)
class Params:
    """A file whose content is exactly `content`, and a product that is not older."""

    path: AbsolutePath
    content: str = field(repr=False)
    """The content itself; resolve has rendered `template:` or read `file:` into it."""
    into: AbsolutePath
    """The product; `{kernel}` is the running release. Where it is not there, nothing is built."""
    by: Annotated[tuple[str, ...], MinLen(1)]
    """The program that builds it, and its words."""
    mode: Mode = "0644"
    owner: str = "root"
    group: str = "root"
    within_s: Annotated[int, Ge(1)] = 600


def owns(want: Params) -> tuple[Owned, ...]:
    """What it is built from, and what is built."""
    return (path(want.path, ("file", want)), path(want.into, ("built", want.by), shared=True))


def probes(want: Params) -> tuple[Probe, ...]:
    """The file, and which of the two is older."""
    return (*file.probes(_file(want)), _age(want))


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """CREATE or UPDATE of the file, which builds anew; or that alone, after a run that was killed between."""
    build = _build(want)
    written = file.changes(_file(want), facts)
    if written:
        return tuple(replace(draft, ops=(*draft.ops, build)) for draft in written)
    have = facts[_age(want)]
    if not isinstance(have, Unknown) and have["exit"] == 0:
        return ()
    before = str(have) if isinstance(have, Unknown) else f"older than {want.path}"
    return (Draft(Action.UPDATE, want.into, before, "built of it", (build,)),)


def undone(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """A REMOVE of the file; the product is built without it."""
    removed = file.undone(_file(want), facts)
    return tuple(replace(draft, ops=(*draft.ops, _build(want))) for draft in removed)


def _build(want: Params) -> Op:
    return Op("command", {"words": list(want.by), "environment": {}, "within_s": want.within_s})


def _file(want: Params) -> file.Params:
    return file.Params(want.path, want.content, want.mode, want.owner, want.group)


def _age(want: Params) -> Probe:
    return Probe("command", (("sh", "-c", IS_BUILT, "sh", want.path, want.into), LOOK_WITHIN_S))
