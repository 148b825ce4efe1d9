"""file: a text at a path, with mode and owner."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.owned import Owned, path
from launcher.model.plan import Action, Draft, Op
from launcher.steps import attributes, texts
from launcher.steps.attributes import AbsolutePath, Mode


@dataclass(frozen=True, slots=True)
class Params:
    """A file whose content is exactly `content`."""

    path: AbsolutePath
    content: str | bytes = field(repr=False)
    """The content itself; resolve has rendered `template:` or read `file:` into it. Bytes: no text."""
    mode: Mode = "0644"
    owner: str = "root"
    group: str = "root"
    secret: bool = False
    """The content is never shown, diffed or journaled."""
    reader: str = ""
    """A unit that reads it again when it has changed: it is reloaded, if it runs."""


def owns(want: Params) -> tuple[Owned, ...]:
    """The path."""
    return (path(want.path, ("file", want)),)


def probes(want: Params) -> tuple[Probe, ...]:
    """What is at the path, and its text where that is another one; not of a secret, not for a binary."""
    if want.secret or isinstance(want.content, bytes):
        return (Probe("path", (want.path,)),)
    return (Probe("path", (want.path, texts.digest(want.content))),)


def changes(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """CREATE, or UPDATE of content, or of mode and owner alone."""
    have = facts[probes(want)[0]]
    sha256 = texts.digest(want.content)
    after = f"file {attributes.wanted(want)}"
    put = Op("put", attributes.arguments(want), content=texts.data(want.content), secret=want.secret)
    same = not isinstance(have, Unknown) and have["type"] == "file" and have["sha256"] == sha256
    if same:
        if attributes.found(have) == attributes.wanted(want):
            return ()
        only = Op("attributes", attributes.arguments(want))
        return (Draft(Action.UPDATE, want.path, attributes.describe(have), after, (only,)),)
    before = attributes.describe(have)
    again = (Op("units", {"refresh": [want.reader]}),) if want.reader else ()
    ops = (*attributes.clear(have, want.path, wanted_type="file"), put, *again)
    if want.secret:
        return (Draft(_action(before), want.path, before, f"{after}, content changed (secret)", ops),)
    if isinstance(want.content, bytes):
        return (Draft(_action(before), want.path, before, f"{after}, content {sha256[:8]}", ops),)
    text = "" if isinstance(have, Unknown) else have.get("text", "")
    return (
        Draft(
            _action(before),
            want.path,
            before,
            f"{after}, content {sha256[:8]}",
            ops,
            diff=texts.diff(text, want.content, want.path),
        ),
    )


def undone(want: Params, facts: Facts) -> tuple[Draft, ...]:
    """A REMOVE of the file, which its reader then reads no more."""
    again = (Op("units", {"refresh": [want.reader]}),) if want.reader else ()
    removed = attributes.gone(facts[probes(want)[0]], want.path)
    return tuple(replace(draft, ops=(*draft.ops, *again)) for draft in removed)


def _action(before: str) -> Action:
    return Action.CREATE if before == "absent" else Action.UPDATE
