"""Quantities about names: flags, keys, values and variables that a release does not know, or no more."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping

from launcher.lint.reading import Quantity, Reading
from launcher.lint.values import Value, shown
from launcher.model.history import Entry, gone_in, ignored_in, known_in
from launcher.model.profile import Setting, Settings

OURS = "VLLM_"
NEAR = 0.74
"""How alike two names must be for one to be taken for the other misspelled (difflib's ratio)."""


def unknown_flags(r: Reading) -> Value:
    """Flags that neither the release nor our history has: misspelled, with what was probably meant."""
    known = _options(r)
    if known is None:
        return None
    flags = r.launch.flags
    missing = [n for n in flags if _head(n) not in known and n not in r.knowledge.history.settings]
    return r.told((f"--{n}{_meant(_head(n), known)}", flags[n]) for n in missing if n != "model")


def gone_flags(r: Reading) -> Value:
    """Flags that the release has no more, or not yet, and what to write instead."""
    return r.told(_gone(r, r.launch.flags, r.knowledge.history.settings, "--"))


def ignored_settings(r: Reading) -> Value:
    """Flags, and keys of JSON, that the release accepts and does nothing with."""
    return r.told(
        (f"{name}{_instead(entry)}", setting)
        for name, setting in _everything(r)
        if (entry := r.knowledge.history.settings.get(name)) and r.version and ignored_in(entry, r.version)
    )


def unknown_keys(r: Reading) -> Value:
    """Keys of JSON that the release's configuration does not have."""
    return r.told(_unknown_keys(r))


def gone_values(r: Reading) -> Value:
    """Values that the release accepts and does not do."""
    return r.told(
        (f"--{name} {shown(setting.value)}{_instead(entry)}", setting)
        for name, setting in _everything(r)
        if (entry := r.knowledge.history.settings.get(name))
        and r.version
        and gone_in(entry, shown(setting.value), r.version)
    )


def unknown_variables(r: Reading) -> Value:
    """VLLM_ variables that neither the release nor our history has."""
    known = {name for snapshot in r.snapshots() for name in snapshot.variables}
    if not known or r.beyond():
        return None
    history = r.knowledge.history.variables
    given = r.launch.variables
    missing = [n for n in given if n.startswith(OURS) and n not in known and n not in history]
    return r.told((f"{n}{_meant(n, known)}", given[n]) for n in missing)


def gone_variables(r: Reading) -> Value:
    """Variables that the release reads no more, or not yet, and what to write instead."""
    return r.told(_gone(r, r.launch.variables, r.knowledge.history.variables, ""))


def misspelled_variables(r: Reading) -> Value:
    """Variables that begin nearly as those of a library do (NCCL_, NVSHMEM_…), with what was meant."""
    prefixes = (r.behaviour("variable-prefixes") or "").split()
    return r.told(_misspelled(r, prefixes))


def _misspelled(r: Reading, prefixes: Collection[str]) -> Iterator[tuple[str, Setting]]:
    for name, setting in r.launch.variables.items():
        begin, _, rest = name.partition("_")
        near = difflib.get_close_matches(begin, prefixes, n=1, cutoff=NEAR)
        if rest and near and begin not in prefixes:
            yield f"{name} (did you mean {near[0]}_{rest}?)", setting


def _gone(
    r: Reading, given: Settings, history: Mapping[str, Entry], dashes: str
) -> Iterator[tuple[str, Setting]]:
    for name, setting in given.items():
        entry = history.get(name)
        if entry and r.version and not known_in(entry, r.version):
            yield f"{dashes}{name}{_instead(entry)}", setting


def _unknown_keys(r: Reading) -> Iterator[tuple[str, Setting]]:
    if r.beyond():
        return
    for flag, setting in r.launch.flags.items():
        known = [snapshot.keys[flag] for snapshot in r.snapshots() if flag in snapshot.keys]
        if not known or not isinstance(setting.value, dict):
            continue
        names = {key for keys in known for key in keys}
        for key in setting.value:
            if key.partition(".")[0] not in {n.partition(".")[0] for n in names}:
                yield f"{flag}.{key}{_meant(key, names)}", setting


def _everything(r: Reading) -> Iterator[tuple[str, Setting]]:
    """Flags, and the keys within their JSON, dotted."""
    for name, setting in r.launch.flags.items():
        yield name, setting
        if isinstance(setting.value, dict):
            yield from ((f"{name}.{key}", Setting(v, setting.source)) for key, v in setting.value.items())


def _options(r: Reading) -> set[str] | None:
    """Options of the release, or of those around it; None where a newer one may have more."""
    if r.beyond() or not r.snapshots():
        return None
    return {name for snapshot in r.snapshots() for name in snapshot.options}


def _head(name: str) -> str:
    return name.partition(".")[0]


def _meant(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _instead(entry: Entry) -> str:
    return f" (instead: {entry.instead})" if entry.instead else ""


QUANTITIES: dict[str, Quantity] = {
    "unknown_flags": unknown_flags,
    "gone_flags": gone_flags,
    "ignored_settings": ignored_settings,
    "unknown_keys": unknown_keys,
    "gone_values": gone_values,
    "unknown_variables": unknown_variables,
    "gone_variables": gone_variables,
    "misspelled_variables": misspelled_variables,
}
