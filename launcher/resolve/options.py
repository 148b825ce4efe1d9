"""A setting against the snapshot of a release: unknown names, keys and values; knows no layers."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from launcher.model.problem import Problem
from launcher.model.profile import Engine, Setting
from launcher.model.snapshot import Option, Snapshot
from launcher.model.values import Json


def option_problems(spelled: str, setting: Setting, engine: Engine) -> Iterator[Problem]:
    """What the release's parser would refuse of a setting, spelled as this release does (`--` left out).

    Nothing without a snapshot. `a.b` is the key b of the option a, whose value is JSON.
    """
    snapshot = engine.snapshot
    if snapshot is None:
        return
    name, _, key = spelled.partition(".")
    option = snapshot.options.get(name)
    if option is None:
        what = f"{engine.name} has no flag --{name}"
        yield _unknown(what, name, snapshot.options, setting=setting, engine=engine)
        return
    option = snapshot.options.get(option.same_as, option)
    for path, value in _leaves(key, setting.value):
        if path and name in snapshot.keys:
            yield from _key_problems(name, path, value, setting=setting, engine=engine, snapshot=snapshot)
    if not key and not isinstance(setting.value, dict):
        yield from _value_problems(f"--{name}", option, setting=setting, engine=engine)


def _leaves(path: str, value: Json) -> Iterator[tuple[str, Json]]:
    """Each key below `path`, dotted, and its value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}" if path else str(key), inner)
    else:
        yield path, value


def _key_problems(
    name: str, path: str, value: Json, *, setting: Setting, engine: Engine, snapshot: Snapshot
) -> Iterator[Problem]:
    known = snapshot.keys[name]
    step = path
    while step not in known and "." in step:
        step = step.rpartition(".")[0]
    if step not in known or (step != path and any(k.startswith(f"{step}.") for k in known)):
        what = f"--{name} of {engine.name} has no key {path}"
        yield _unknown(what, path, known, setting=setting, engine=engine)
    elif step == path and isinstance(value, str):
        yield from _choice_problems(f"--{name}.{path}", value, known[path], setting=setting, engine=engine)


def _value_problems(shown: str, option: Option, *, setting: Setting, engine: Engine) -> Iterator[Problem]:
    value = setting.value
    if option.switch and not isinstance(value, bool):
        what = f"{shown} is {value!r}, expected true or false"
        do = "write true or false, without quotes"
        yield Problem(what, where=setting.source, why=f"{engine.name} takes no value for it", do=do)
    elif option.one_way and value is False:
        what = f"{shown} cannot be false"
        do = f"write `{shown[2:]}: null` to leave it out"
        yield Problem(what, where=setting.source, why=f"{engine.name} has no --no-{shown[2:]}", do=do)
    elif isinstance(value, bool) and not option.switch:
        what = f"{shown} is {str(value).lower()}, expected a value"
        do = "write the value, or `null` to leave the flag out"
        yield Problem(what, where=setting.source, why=f"it is no switch in {engine.name}", do=do)
    elif isinstance(value, str):
        yield from _choice_problems(shown, value, option, setting=setting, engine=engine)


def _choice_problems(
    shown: str, value: str, option: Option, *, setting: Setting, engine: Engine
) -> Iterator[Problem]:
    if option.choices and value not in option.choices:
        near = difflib.get_close_matches(value, option.choices, n=1)
        yield Problem(
            what=f"{shown} is {value!r}, which {engine.name} does not know",
            where=setting.source,
            why=f"it takes {', '.join(option.choices)}",
            do=f"did you mean `{near[0]}`?" if near else "write one of them",
        )


def _unknown(what: str, name: str, known: Iterable[str], *, setting: Setting, engine: Engine) -> Problem:
    near = difflib.get_close_matches(name.replace("_", "-"), known, n=1) or difflib.get_close_matches(
        name, known, n=1
    )
    return Problem(
        what,
        where=setting.source,
        why=f"what it takes is listed in configs/engines/{engine.name}.json",
        do=f"did you mean `{near[0]}`?" if near else "remove it",
    )
