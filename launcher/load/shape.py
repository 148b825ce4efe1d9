"""Values in the shape that type hints ask for: text to numbers, switches, Settings; refuses nothing."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, Union

from launcher.load.document import Location, Plain
from launcher.model.profile import Setting
from launcher.model.values import Json

Place: TypeAlias = Callable[[Location], str]
"""A location within the values → `file:line`."""

PLACES = frozenset({"source", "places"})
"""Fields that no file writes: the place of the mapping, and of each key that is written in it."""
NULLS = ("", "~", "null")
"""Plain words that mean "nothing here"."""
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
"""JSON's numbers; `017` and `1_000` are none, they mean different things to different readers."""
LONGEST = 20
"""Digits; Python refuses to read thousands of them, and nothing we count needs more."""


def shape(wanted: Any, value: object, location: Location, place: Place) -> object:
    """Values as `wanted` asks for them. What does not fit stays as it is, for its validator to refuse."""
    wanted = bare(wanted)
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if wanted is Setting:
        return value if isinstance(value, Setting) else _setting(value, location, place)
    if origin in (Union, types.UnionType):
        return shape(_fitting(inner, value), value, location, place)
    if dataclasses.is_dataclass(wanted):
        return _fields(wanted, value, location, place)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        value = {} if is_null(value) else value
        if not isinstance(value, Mapping):
            return value
        return {str(k): shape(inner[1], v, (*location, k), place) for k, v in value.items()}
    if origin in (tuple, frozenset) and isinstance(value, (list, tuple)):
        each = [shape(inner[0], v, (*location, i), place) for i, v in enumerate(value)]
        return tuple(each) if origin is tuple else frozenset(each)
    return _scalar(wanted, value)


def _setting(value: object, location: Location, place: Place) -> Setting:
    return Setting(as_json(value), place(location), dict(_inside(value, (), location, place)))


def _inside(value: object, at: Location, location: Location, place: Place) -> Iterator[tuple[str, str]]:
    """Each key of a mapping, dotted, and its place."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield ".".join(map(str, (*at, key))), place((*location, key))
        yield from _inside(inner, (*at, key), (*location, key), place)


def _fields(wanted: Any, value: object, location: Location, place: Place) -> object:
    value = {} if is_null(value) else value
    if not isinstance(value, Mapping):
        return value
    hints = hints_of(wanted)
    filled = {
        str(k): shape(hints[k], v, (*location, k), place) if k in hints and k not in PLACES else v
        for k, v in value.items()
    }
    ours = {"source": place(location), "places": {str(k): place((*location, k)) for k in value}}
    return filled | {k: Unfit("") if k in filled else ours[k] for k in PLACES & hints.keys()}


def _scalar(wanted: object, value: object) -> object:
    if wanted is bool:
        return value == "true" if value in ("true", "false") else _or_unfit(value, bool)
    if wanted is int or wanted is float:
        number = _number(value) if isinstance(value, str) else value
        return _or_unfit(number, int, float) if wanted is float else _or_unfit(number, int)
    if is_null(value):
        return None
    if wanted is str and isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str) else value


@dataclasses.dataclass(frozen=True, slots=True)
class Unfit:
    """Keeps pydantic from reading what we do not: `1_000` and ` 12 ` as numbers, `yes` and 1 as true."""

    value: object


def _or_unfit(value: object, *fitting: type[object]) -> object:
    return value if type(value) in fitting else Unfit(value)


def as_json(value: object) -> Json:
    """What a setting means: plain true/false are bools, plain nothing is None; inside of a list or
    mapping, where the flag takes JSON, plain numbers are numbers too. All else stays text.

    >>> as_json(Plain("0.10")), as_json([Plain("1"), "1"])
    ('0.10', [1, '1'])
    """
    if isinstance(value, dict):
        return {str(k): _json_inside(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_json_inside(v) for v in value]
    return as_text(value)


def as_text(value: object) -> Json:
    """Like `as_json`, but numbers stay text everywhere: what a role's parameters are before rendering."""
    if isinstance(value, dict):
        return {str(k): as_text(v) for k, v in value.items()}
    if isinstance(value, list):
        return [as_text(v) for v in value]
    if isinstance(value, Plain):
        if value in NULLS:
            return None
        return value == "true" if value in ("true", "false") else str(value)
    return typing.cast("Json", value)


def _json_inside(value: object) -> Json:
    return as_json(_number(value) if isinstance(value, Plain) else value)


def _number(text: str) -> int | float | str:
    """The number that a text writes; the text itself if that is none, or one beyond all use."""
    if not NUMBER.fullmatch(text) or len(text) > LONGEST:
        return text
    number = float(text) if re.search("[.eE]", text) else int(text)
    return number if math.isfinite(number) else text


def is_null(value: object) -> bool:
    """Nothing, or a plain word for it."""
    return value is None or (isinstance(value, Plain) and value in NULLS)


def bare(wanted: Any) -> Any:
    """A hint without its Annotated."""
    while typing.get_origin(wanted) is typing.Annotated:
        wanted = typing.get_args(wanted)[0]
    return wanted


def members_of(hint: Any) -> list[Any]:
    """What a union is made of, None apart; the hint itself if it is none."""
    core = bare(hint)
    if typing.get_origin(core) not in (Union, types.UnionType):
        return [core]
    return [member for member in typing.get_args(core) if member is not type(None)]


def _fitting(members: tuple[Any, ...], value: object) -> Any:
    """The member of a union that a value's shape points to."""

    def fits(member: Any) -> bool:
        core = bare(member)
        origin = typing.get_origin(core)
        if isinstance(value, Mapping):
            keyed = dataclasses.is_dataclass(core) and set(value) <= set(hints_of(core))
            return keyed or (isinstance(origin, type) and issubclass(origin, Mapping))
        if isinstance(value, (list, tuple)):
            return origin in (tuple, frozenset)
        return core in (str, int, float, bool, Setting) or origin is typing.Literal

    if is_null(value) and type(None) in members:
        return type(None)
    return next((m for m in members if fits(m)), members[0])


def hints_of(wanted: Any) -> dict[str, Any]:
    """Field → type of a dataclass."""
    return _hints_once(wanted)


@functools.cache
def _hints_once(wanted: Any) -> dict[str, Any]:
    return typing.get_type_hints(wanted, include_extras=True)
