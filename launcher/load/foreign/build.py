"""A server that a file starts → Launch, with what the caller knows beyond the file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from launcher.load.foreign.expand import Word
from launcher.load.foreign.flags import Flags, read_flags
from launcher.load.foreign.marks import value
from launcher.load.foreign.side import (
    HOST_FLAGS,
    KV_TRANSFER,
    by_name,
    hosts_of,
    instance_key,
    part_of_instance,
    side,
)
from launcher.load.foreign.starts import Start, release
from launcher.model.launch import Launch, Unknown
from launcher.model.problem import Problem
from launcher.model.profile import Hardware, Model, Setting
from launcher.model.snapshot import Option, Snapshot


@dataclass(frozen=True, slots=True)
class Given:
    """What the caller knows. What is empty or None is left to the file to tell; the rest counts before it."""

    snapshots: Mapping[str, Snapshot] = field(default_factory=dict)
    """Release → what it accepts. Tells switches from flags with a value, and short forms."""
    models: Sequence[Model] = ()
    """Those that a path or name may mean."""
    model: Model | None = None
    hardware: Hardware | None = None
    version: str = ""
    pool: str = ""


@dataclass(frozen=True, slots=True)
class Context:
    """What a form knows of a server beside its command."""

    path: str
    read_beside: Callable[[str], str | None]
    given: Given
    name: str = ""
    """What the file calls it; empty: by its line."""
    hints: tuple[str, ...] = ()
    """Names that may tell its side, after those of the command."""
    unit: Mapping[str, str] | None = None
    hosts: int | None = None
    """Where the form says so; None: by flags."""
    instance: str = ""
    version: str = ""
    """Where the text says it, without being an image's tag."""


def build(start: Start, context: Context, problems: list[Problem]) -> Launch:
    """One server. Problems of its command line are added to `problems`."""
    given = context.given
    version = given.version or release(start.image) or context.version
    flags = read_flags(
        start.args,
        path=context.path,
        serve=start.serve,
        options=options_of(given.snapshots, version),
        read_beside=context.read_beside,
    )
    if start.wrapper:
        _leave_open(flags, start, context, version)
    problems.extend(flags.problems)
    hints = (*start.hints, *context.hints, context.name, context.path.rsplit("/", 1)[-1])
    pool, disaggregated = side(
        flags.settings, more_flags=flags.more or KV_TRANSFER in flags.sometimes, hints=hints
    )
    if given.pool:
        pool, disaggregated = given.pool, True
    hosts = context.hosts or hosts_of(
        flags.settings, more_flags=flags.more or not HOST_FLAGS.isdisjoint(flags.sometimes)
    )
    return Launch(
        name=context.name or _named(pool or by_name(start.hints), context.path, start.line),
        flags=flags.settings,
        variables=settings(start.variables, context.path),
        source=f"{context.path}:{start.line}",
        version=version,
        model=given.model or recognised(flags.settings.get("model"), given.models),
        hardware=given.hardware,
        instance=context.instance,
        pool=pool,
        disaggregated=disaggregated,
        hosts=hosts,
        unit=context.unit,
        container=start.container,
        more_flags=flags.more,
        sometimes=flags.sometimes,
        unread=tuple(flags.unread),
        left_over=tuple(flags.left_over),
        more_variables=start.more_variables or bool(start.wrapper),
    )


def _leave_open(flags: Flags, start: Start, context: Context, version: str) -> None:
    """Of a wrapper's flags those that the engine has; what the wrapper makes of its own cannot be told."""
    options = options_of(context.given.snapshots, version)
    for name in [name for name in flags.settings if name != "model" and name not in options]:
        del flags.settings[name]
    flags.left_over = [found for found in flags.left_over if found.after.removeprefix("no-") in options]
    flags.more = True
    flags.unread[f"`-m {start.wrapper}` of {context.path}:{start.line}"] = None


def settings(variables: Mapping[str, Word], path: str) -> dict[str, Setting]:
    """Variables with the lines that set them."""
    return {name: Setting(value(word.text), f"{path}:{word.line}") for name, word in variables.items()}


def options_of(snapshots: Mapping[str, Snapshot], version: str) -> Mapping[str, Option]:
    """Options of a release; of all releases, the newest counting, where it is unknown or has no snapshot."""
    if version in snapshots:
        return snapshots[version].options
    merged: dict[str, Option] = {}
    for name in sorted(snapshots, key=_numbers):
        merged |= snapshots[name].options
    return merged


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def recognised(setting: Setting | None, models: Iterable[Model]) -> Model | None:
    """The model of configs/ that a path or a repository's name means, by its last part."""
    if setting is None or not isinstance(setting.value, str) or isinstance(setting.value, Unknown):
        return None
    last = setting.value.rstrip("/").rsplit("/", 1)[-1].lower()
    return next((m for m in models if last in map(str.lower, (m.name, m.folder, *m.known_as))), None)


def with_instances(launches: Sequence[Launch]) -> list[Launch]:
    """Launches that name the same leader are one instance; the form's own word counts before.

    Two that would be the same part of it are none: a text may show several deployments at one address.
    """
    keys = [None if launch.instance else instance_key(launch) for launch in launches]
    parts = Counter((key, part_of_instance(launch)) for key, launch in zip(keys, launches, strict=True))
    twice = {key for (key, _), count in parts.items() if count > 1}
    return [
        replace(launch, instance=key) if key is not None and key not in twice else launch
        for key, launch in zip(keys, launches, strict=True)
    ]


def _named(pool: str, path: str, line: int) -> str:
    return f"{pool or 'launch'} at {path.rsplit('/', 1)[-1]}:{line}"
