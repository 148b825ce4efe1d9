"""A setting against the snapshot of a release: unknown names, keys and values; knows no layers."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import replace

from launcher.model.problem import Problem
from launcher.model.profile import Engine, Setting
from launcher.model.snapshot import Option, Snapshot
from launcher.model.values import Json


def option_problems(spelled: str, setting: Setting, engine: Engine) -> Iterator[Problem]:
    """What the release's parser would refuse of a setting, spelled as this release does (`--` left out).

    Nothing without a snapshot. `a.b` is the key b of the option a, whose value is JSON.
    """
    if engine.snapshot is not None:
        for problem in _problems(spelled, setting.value, engine.snapshot, engine.name):
            yield replace(problem, where=setting.source)


def _problems(spelled: str, value: Json, snapshot: Snapshot, release: str) -> Iterator[Problem]:
    name, _, key = spelled.partition(".")
    option = snapshot.options.get(name)
    if option is None:
        yield _unknown(f"{release} has no flag --{name}", name, snapshot.options, release)
        return
    option = snapshot.options.get(option.same_as, option) if not option.switch else option
    if not key and not isinstance(value, dict):
        yield from _value_problems(f"--{name}", value, option, release)
    elif name in snapshot.keys:
        known = snapshot.keys[name]
        for path, inner in _leaves(key, value):
            if not _has(known, path):
                yield _unknown(f"--{name} of {release} has no key {path}", path, known, release)
            elif path in known and str(inner).lower().replace("-", "_") not in known[path].choices:
                # as releases read the names of back ends inside of JSON, and there alone
                yield from _choice_problems(f"--{name}.{path}", inner, known[path], release)


def _leaves(path: str, value: Json) -> Iterator[tuple[str, Json]]:
    """Each key below `path`, dotted, and its value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}" if path else str(key), inner)
    else:
        yield path, value


def _has(known: Iterable[str], path: str) -> bool:
    """Is it a key, or inside of one below which no keys are known?"""
    above = [key for key in known if path == key or path.startswith(f"{key}.")]
    nearest = max(above, key=len, default=None)
    return nearest is not None and (
        nearest == path or not any(key.startswith(f"{nearest}.") for key in known)
    )


def _value_problems(shown: str, value: Json, option: Option, release: str) -> Iterator[Problem]:
    if option.switch and not isinstance(value, bool):
        what = f"{shown} is {value!r}, expected true or false"
        do = "write true or false, without quotes"
        yield Problem(what, why=f"it takes no value in {release}", do=do)
    elif option.switch and option.one_way and value is False:
        what, why = f"{shown} cannot be false", f"{release} has no --no-{shown[2:]}"
        yield Problem(what, why=why, do=f"write `{shown[2:]}: null` to leave it out")
    elif not option.switch and (value is False or (value is True and option.words not in ("?", "*"))):
        what = f"{shown} is {str(value).lower()}, expected a value"
        do = "write the value, or `null` to leave the flag out"
        yield Problem(what, why=f"it is no switch in {release}", do=do)
    else:
        yield from _choice_problems(shown, value, option, release)


def _choice_problems(shown: str, value: Json, option: Option, release: str) -> Iterator[Problem]:
    if not option.choices or not isinstance(value, str) or {value, value.upper()} & set(option.choices):
        return
    near = difflib.get_close_matches(value, option.choices, n=1)
    yield Problem(
        f"{shown} is {value!r}, which {release} does not know",
        why=f"it takes {', '.join(option.choices)}",
        do=f"did you mean `{near[0]}`?" if near else "write one of them",
    )


def _unknown(what: str, name: str, known: Iterable[str], release: str) -> Problem:
    # flags are written with dashes, keys with underscores
    near = [m for n in (name, name.replace("_", "-")) for m in difflib.get_close_matches(n, known, n=1)]
    why = f"what it takes is listed in configs/engines/{release}.json"
    return Problem(what, why=why, do=f"did you mean `{near[0]}`?" if near else "remove it")
