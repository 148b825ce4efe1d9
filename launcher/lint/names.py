"""Quantities about names: flags, keys, values and variables that a release does not know, or no more."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from launcher.lint.reading import Quantity, Reading
from launcher.lint.values import Value, shown
from launcher.model.history import Entry, gone_in, ignored_in, known_in, release
from launcher.model.profile import Setting, Settings
from launcher.model.snapshot import Snapshot

OURS = "VLLM_"
NEAR = 0.74
"""How alike two names must be for one to be taken for the other misspelled (difflib's ratio)."""


def unknown_flags(r: Reading) -> Value:
    """Flags that no release has: misspelled, with what was probably meant."""
    known = {"model", *r.knowledge.history.settings, *_of_all(r, _options)}
    return r.told(
        (f"--{name}{_meant(_head(name), known)}", setting)
        for name, setting in r.launch.flags.items()
        if _head(name) not in known and not r.beyond()
    )


def gone_flags(r: Reading) -> Value:
    """Flags that other releases have: gone, or not yet there, and what to write instead."""
    return r.told(_elsewhere(r, r.launch.flags, r.knowledge.history.settings, _options))


def ignored_settings(r: Reading) -> Value:
    """Flags, and keys of JSON, that the release accepts and does nothing with."""
    return r.told(
        (f"{name}{_instead(entry)}", setting)
        for name, setting, entry in _told_of(r)
        if ignored_in(entry, r.version)
    )


def newest_known(r: Reading) -> Value:
    """The newest release of which there is a snapshot, where this one is newer; absent otherwise."""
    if not r.beyond():
        return None
    return max((s.version for s in r.knowledge.snapshots.values()), key=release)


def unknown_keys(r: Reading) -> Value:
    """Keys of JSON that the release's configuration does not have."""
    return r.told(_unknown_keys(r))


def gone_values(r: Reading) -> Value:
    """Values that the release accepts and does not do."""
    return r.told(
        (f"--{name} {shown(setting.value)}{_instead(entry)}", setting)
        for name, setting, entry in _told_of(r)
        if gone_in(entry, shown(setting.value), r.version)
    )


def unknown_variables(r: Reading) -> Value:
    """VLLM_ variables that no release reads, but nearly so, with what was probably meant."""
    known = _variables_of_all(r)
    return r.told((f"{name}{_meant(name, known)}", s) for name, s in _stray(r, known) if _near(name, known))


def stray_variables(r: Reading) -> Value:
    """VLLM_ variables that no release reads, and that are near no other: a plugin's, or somebody's own."""
    known = _variables_of_all(r)
    return r.told((name, setting) for name, setting in _stray(r, known) if not _near(name, known))


def gone_variables(r: Reading) -> Value:
    """Variables that other releases read: gone, or not yet there, and what to write instead."""
    return r.told(_elsewhere(r, r.launch.variables, r.knowledge.history.variables, _variables))


def misspelled_variables(r: Reading) -> Value:
    """Variables that begin nearly as those of a library do (NCCL_, NVSHMEM_…), with what was meant."""
    prefixes = r.words("variable-prefixes")
    return r.told(_misspelled(r, prefixes))


def _misspelled(r: Reading, prefixes: Collection[str]) -> Iterator[tuple[str, Setting]]:
    for name, setting in r.launch.variables.items():
        begin, _, rest = name.partition("_")
        near = _near(begin, prefixes)
        if rest and near and begin not in prefixes:
            yield f"{name} (did you mean {near[0]}_{rest}?)", setting


def _elsewhere(
    r: Reading, given: Settings, history: Mapping[str, Entry], names: Callable[[Snapshot], Collection[str]]
) -> Iterator[tuple[str, Setting]]:
    """What this release does not know and another does; by the history, or else by its own snapshot."""
    exact = [s for s in r.snapshots() if r.version and release(s.version) == release(r.version)]
    dashes = "--" if given is r.launch.flags else ""
    for name, setting in given.items():
        entry, head = history.get(name), _head(name)
        here = not exact or head in names(exact[0])
        if not here and head in exact[0].renamed:
            yield f"{dashes}{name} (instead: {dashes}{exact[0].renamed[head]})", setting
        elif name in r.named or not r.version:
            continue
        elif entry:
            if not known_in(entry, r.version):
                yield f"{dashes}{name}{_instead(entry, r.version)}", setting
        elif not here:
            others = [version for version, s in r.knowledge.snapshots.items() if head in names(s)]
            if others:
                yield f"{dashes}{name} (of {', '.join(sorted(others, key=release))})", setting


def _unknown_keys(r: Reading) -> Iterator[tuple[str, Setting]]:
    if r.beyond():
        return
    for flag, setting in r.launch.flags.items():
        known = [snapshot.keys[flag] for snapshot in r.snapshots() if flag in snapshot.keys]
        if not known or not isinstance(setting.value, dict):
            continue
        names = {key for keys in known for key in keys}
        for key in setting.value:
            if f"{flag}.{key}" in r.named:
                continue
            if key.partition(".")[0] not in {n.partition(".")[0] for n in names}:
                yield f"{flag}.{key}{_meant(key, names)}", _within(setting, key, setting.value[key])


def _told_of(r: Reading) -> Iterator[tuple[str, Setting, Entry]]:
    """Flags, and the keys within their JSON, dotted, of which the history tells; none without a release."""
    for name, setting in r.launch.flags.items() if r.version else ():
        inside = setting.value if isinstance(setting.value, dict) else {}
        given = {name: setting, **{f"{name}.{k}": _within(setting, k, v) for k, v in inside.items()}}
        for each, value in given.items():
            entry = r.knowledge.history.settings.get(each)
            if entry and each not in r.named:
                yield each, value, entry


def _stray(r: Reading, known: Collection[str]) -> Iterator[tuple[str, Setting]]:
    for name, setting in r.launch.variables.items():
        if name.startswith(OURS) and name not in known and not r.beyond():
            yield name, setting


def _variables_of_all(r: Reading) -> set[str]:
    return {*r.knowledge.history.variables, *_of_all(r, _variables)}


def _within(setting: Setting, key: str, value: Value) -> Setting:
    return Setting(value, setting.inside.get(key, setting.source))


def _of_all(r: Reading, names: Callable[[Snapshot], Collection[str]]) -> set[str]:
    return {name for snapshot in r.knowledge.snapshots.values() for name in names(snapshot)}


def _options(snapshot: Snapshot) -> Collection[str]:
    return snapshot.options.keys()


def _variables(snapshot: Snapshot) -> Collection[str]:
    return snapshot.variables


def _head(name: str) -> str:
    return name.partition(".")[0]


def _near(name: str, known: Iterable[str]) -> list[str]:
    return difflib.get_close_matches(name, known, n=1, cutoff=NEAR)


def _meant(name: str, known: Iterable[str]) -> str:
    near = _near(name, known)
    return f" (did you mean {near[0]}?)" if near else ""


def _instead(entry: Entry, version: str = "") -> str:
    if version and release(version) < release(entry.since):
        return f" (since {entry.since})"
    return f" (instead: {entry.instead})" if entry.instead else ""


QUANTITIES: dict[str, Quantity] = {
    "newest_known": newest_known,
    "unknown_flags": unknown_flags,
    "gone_flags": gone_flags,
    "ignored_settings": ignored_settings,
    "unknown_keys": unknown_keys,
    "gone_values": gone_values,
    "unknown_variables": unknown_variables,
    "stray_variables": stray_variables,
    "gone_variables": gone_variables,
    "misspelled_variables": misspelled_variables,
}
