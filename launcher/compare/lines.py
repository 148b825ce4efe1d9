"""The same lines under two releases: what is renamed, gone or without effect, what is decided otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from launcher.explain.fact import shown
from launcher.explain.settings import RESOLVED
from launcher.lint import attention, experts, parallel, schedule
from launcher.lint.quantities import QUANTITIES
from launcher.lint.reading import Reading
from launcher.lint.values import UntoldError, plain
from launcher.lint.values import shown as plainly
from launcher.model.history import Entry, default_in, gone_in, ignored_in, known_in, release
from launcher.model.knowledge import Knowledge
from launcher.model.launch import Launch
from launcher.model.problem import Problem
from launcher.model.profile import Engine, Setting
from launcher.model.snapshot import Option, Snapshot
from launcher.resolve.options import option_problems
from launcher.resolve.settings import current, spelled

Kind: TypeAlias = Literal[
    "renamed", "gone", "later", "refused", "ignored", "heeded", "value", "decided", "default"
]
"""Of what is written: renamed, gone, later (it comes with a later release), refused (its value), ignored,
heeded (it was ignored), value (accepted, and something else is done). Of what is not: decided (worked out by
the engine), default."""

DECIDED = (*parallel.QUANTITIES, *experts.QUANTITIES, *attention.QUANTITIES, *schedule.QUANTITIES)
"""What an engine makes of its lines; memory is told apart, with all its sizes."""
SETTING_OF: Mapping[str, str] = {quantity: setting for setting, quantity in RESOLVED.items()}


@dataclass(frozen=True, slots=True)
class Release:
    """One side of a comparison."""

    version: str
    engine: Engine


@dataclass(frozen=True, slots=True)
class Difference:
    """One line, or one thing that no line says, which means something else."""

    kind: Kind
    name: str
    """The setting, by its current name, or what is decided."""
    before: str
    after: str
    """A value, or, of what is renamed or gone, what to write instead."""
    pools: tuple[str, ...]
    why: str = ""
    source: str = ""
    """`file:line` that sets it; empty where nothing does."""
    known_from: str = ""


def differences(
    launches: Iterable[Launch], before: Release, after: Release, knowledge: Knowledge
) -> tuple[Difference, ...]:
    """Each difference of these lines once, with the pools it is in: what is written, then what is not."""
    found: dict[Difference, dict[str, None]] = {}
    for launch in launches:
        for one in (*_written(launch, before, after, knowledge), *_left(launch, before, after, knowledge)):
            found.setdefault(one, {})[launch.pool or launch.instance] = None
    told = (replace(one, pools=tuple(pools)) for one, pools in found.items())
    return tuple(sorted(told, key=lambda one: get_args(Kind).index(one.kind)))


def _written(launch: Launch, before: Release, after: Release, knowledge: Knowledge) -> Iterator[Difference]:
    spelled_by = after if launch.version == after.version else before
    lost: set[str] = set()
    for name, setting in _settings(launch, spelled_by.engine):
        if name.partition(".")[0] in lost:
            continue
        entry, value = knowledge.history.entry(name), shown(setting.value)
        kind, instead = _fate(name, value, before, after, entry, knowledge)
        refused = None if kind else _refused(name, setting, after.engine)
        if refused and not _refused(name, setting, before.engine):
            kind, instead = "refused", refused.do
        if kind in ("gone", "later", "refused"):
            lost.add(name)
        if kind:
            why, known_from = (entry.because, entry.known_from) if entry else ("", "")
            source = setting.source
            yield Difference(kind, name, value, instead, (), why, source=source, known_from=known_from)


def _fate(
    name: str, value: str, before: Release, after: Release, entry: Entry | None, knowledge: Knowledge
) -> tuple[Kind | None, str]:
    """What becomes of a written setting, and what stands for it then."""
    history = knowledge.history
    old, new = spelled(name, before.engine), spelled(name, after.engine)
    if old != new:
        return "renamed", next(iter(new.values()))
    if entry is None:
        gone = _accepts(before.engine.snapshot, name) and _accepts(after.engine.snapshot, name) is False
        return ("gone", "") if gone else (None, "")
    if not known_in(entry, after.version):
        if release(after.version) < release(entry.since):
            return "later", f"since {entry.since}"
        successor = history.current(name)
        known = (later := history.entry(successor)) and known_in(later, after.version)
        return ("renamed", successor) if successor != name and known else ("gone", entry.instead)
    was, now = ignored_in(entry, before.version), ignored_in(entry, after.version)
    if was != now:
        return ("ignored", "") if now else ("heeded", "")
    if gone_in(entry, value, after.version) and not gone_in(entry, value, before.version):
        return "value", entry.instead
    return None, ""


def _refused(name: str, setting: Setting, engine: Engine) -> Problem | None:
    """What a release's parser says of a flag's value; its keys are looked at with it."""
    flag = spelled(name, engine).get("flag", "")
    if "." in name or name.isupper() or not flag or flag not in _options(engine.snapshot):
        return None
    return next(option_problems(flag, setting, engine), None)


def _settings(launch: Launch, engine: Engine) -> Iterator[tuple[str, Setting]]:
    """Flags by their current names, the keys within their JSON, dotted, and variables."""
    for flag, setting in launch.flags.items():
        name = current(flag, engine)
        yield name, setting
        inside = setting.value if isinstance(setting.value, dict) else {}
        for key, value in inside.items():
            yield f"{name}.{key}", Setting(value, setting.inside.get(key, setting.source))
    yield from launch.variables.items()


def _accepts(snapshot: Snapshot | None, name: str) -> bool | None:
    """Is a flag or key known to a release? None: its snapshot does not say."""
    if snapshot is None or name.isupper():
        return None
    head, _, key = name.partition(".")
    if not key or head not in snapshot.options:
        return head in snapshot.options
    known = snapshot.keys.get(head)
    return None if known is None else any(key == k or key.startswith(f"{k}.") for k in known)


def _left(launch: Launch, before: Release, after: Release, knowledge: Knowledge) -> Iterator[Difference]:
    """What no line says: both releases asked for the same launch."""
    old, new = (
        Reading(replace(launch, version=side.version), knowledge, QUANTITIES) for side in (before, after)
    )
    for name in DECIDED:
        was, now = _told(old, name), _told(new, name)
        setting = SETTING_OF.get(name, name)
        entry = knowledge.history.entry(setting)
        if was != now and not (entry and new.given(setting)):
            about = (entry.because or entry.does) if entry else _about(name)
            yield Difference("decided", setting, was, now, (), about)
    for name, was, now in _defaults(before, after, knowledge):
        if name in RESOLVED or new.given(name) or new.given_variable(name):
            continue
        entry = knowledge.history.entry(name)
        if entry:  # the others are of no account for this model
            why = entry.because or entry.does
            yield Difference("default", name, was, now, (), why, known_from=entry.known_from)


def _about(quantity: str) -> str:
    """Its first sentences, in one line."""
    return " ".join((QUANTITIES[quantity].__doc__ or "").partition("\n\n")[0].split())


def _told(reading: Reading, quantity: str) -> str:
    try:
        return plainly(reading.value(quantity))
    except UntoldError as error:
        return f"cannot be told without {error}"


def _defaults(before: Release, after: Release, knowledge: Knowledge) -> Iterator[tuple[str, str, str]]:
    """Names whose defaults the history follows, and options that both releases have, with other defaults."""
    history = knowledge.history
    followed = {n: e for n, e in {**history.settings, **history.variables}.items() if e.defaults}
    for name, entry in followed.items():
        was, now = (_default(entry, side.version) for side in (before, after))
        if was != now:
            yield name, was, now
    other = _options(after.engine.snapshot)
    for name, option in _options(before.engine.snapshot).items():
        old, new = plain(option.default), plain(other[name].default) if name in other else None
        if name not in followed and old is not None and new is not None and old != new:
            yield name, plainly(old), plainly(new)


def _default(entry: Entry, version: str) -> str:
    return (default_in(entry, version) or "") if known_in(entry, version) else ""


def _options(snapshot: Snapshot | None) -> dict[str, Option]:
    """Options and keys of a release, dotted."""
    if snapshot is None:
        return {}
    keys = {f"{o}.{key}": option for o, known in snapshot.keys.items() for key, option in known.items()}
    return {**snapshot.options, **keys}
