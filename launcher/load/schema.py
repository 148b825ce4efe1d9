"""Values → dataclasses by their type hints, with every Problem at once; knows nothing of our domain."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar, Union

import pydantic
from pydantic_core import ErrorDetails

from launcher.load.document import Location, Plain
from launcher.model.problem import InputError, Problem
from launcher.model.profile import Json, Setting

T = TypeVar("T")
Place: TypeAlias = Callable[[Location], str]
"""A location within the values → `file:line`."""

NULLS = ("", "~", "null")
"""Plain words that mean "nothing here"."""
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
"""JSON's numbers; `017` and `1_000` are none, they mean different things to different readers."""


def fill(wanted: type[T], values: object, *, place: Place, given: Mapping[str, object] | None = None) -> T:
    """Makes a `wanted` (a dataclass, or a type made of such) from a document's values or plain ones.

    Text becomes what the field's type says: a number, true/false, JSON in a Setting. A field called
    `source` is never read: it gets the place of its mapping; fields in `given` are not read either.
    InputError with all Problems at once.
    """
    given = given or {}
    ready = _convert(wanted, values, (), place)
    problems: list[Problem] = []
    if isinstance(ready, dict):
        known = [k for k in _keys_of(wanted) if k not in given]
        problems = [_unknown_key((k,), place, known) for k in given if k in ready]
        ready |= given
    try:
        made = _adapter(wanted).validate_python((ready,))[0]
    except pydantic.ValidationError as error:
        problems += [_problem(wanted, e, place, given) for e in error.errors(include_url=False)]
    if problems:
        raise InputError(*dict.fromkeys(problems))
    return typing.cast("T", made)


def json_schema(wanted: type[Any], *, title: str) -> dict[str, Any]:
    """JSON Schema of the files a `wanted` is filled from; editors complete and check with it."""
    whole = _adapter(wanted).json_schema()
    kinds: dict[str, Any] = whole["$defs"]
    for kind in kinds.values():
        kind.get("properties", {}).pop("source", None)
        if "source" in kind.get("required", ()):
            kind["required"].remove("source")
    kinds[Setting.__name__] = {"description": "Text, true or false, empty (removes it), or JSON."}
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": title, **whole["prefixItems"][0], "$defs": kinds}


def near(word: str, known: Iterable[str]) -> str:
    """The way out for an unknown word: what was probably meant, and what there is."""
    names = sorted(known)
    if not names:
        return "there is none to choose from"
    meant = difflib.get_close_matches(word, names, n=1)
    guess = f"did you mean `{meant[0]}`? " if meant else ""
    listed = ", ".join(names) if len(names) <= 16 else ""
    return guess + (f"known: {listed}" if listed else "" if meant else f"one of {len(names)} known names")


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
    if isinstance(value, Plain) and NUMBER.fullmatch(value):
        return float(value) if re.search("[.eE]", value) else int(value)
    return as_json(value)


def _convert(wanted: Any, value: object, location: Location, place: Place) -> object:
    """Values in the shape `wanted` asks for. What does not fit stays as it is, for pydantic to refuse."""
    wanted = _bare(wanted)
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if wanted is Setting:
        return value if isinstance(value, Setting) else Setting(as_json(value), place(location))
    if origin in (Union, types.UnionType):
        return _convert(_member(inner, value), value, location, place)
    if dataclasses.is_dataclass(wanted):
        return _convert_fields(wanted, value, location, place)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        value = {} if _is_null(value) else value
        if not isinstance(value, Mapping):
            return value
        return {str(k): _convert(inner[1], v, (*location, k), place) for k, v in value.items()}
    if origin in (tuple, frozenset) and isinstance(value, (list, tuple)):
        each = [_convert(inner[0], v, (*location, i), place) for i, v in enumerate(value)]
        return tuple(each) if origin is tuple else frozenset(each)
    return _convert_scalar(wanted, value)


def _convert_fields(wanted: Any, value: object, location: Location, place: Place) -> object:
    value = {} if _is_null(value) else value
    if not isinstance(value, Mapping):
        return value
    hints = _hints(wanted)
    filled = {
        str(k): _convert(hints[k], v, (*location, k), place) if k in hints and k != "source" else v
        for k, v in value.items()
    }
    if "source" in hints:
        filled["source"] = _Unfit("") if "source" in filled else place(location)
    return filled


def _convert_scalar(wanted: object, value: object) -> object:
    if wanted is bool:
        return value == "true" if value in ("true", "false") else _or_unfit(value, bool)
    if wanted is int or wanted is float:
        text = value if isinstance(value, str) and NUMBER.fullmatch(value) else ""
        if text and wanted is float:
            return float(text)
        # Python refuses to read numbers of thousands of digits; nothing we count needs twenty.
        return int(text) if text.lstrip("-").isdigit() and len(text) < 20 else _or_unfit(value, int, float)
    if wanted is str and isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str) else value


@dataclasses.dataclass(frozen=True, slots=True)
class _Unfit:
    """Keeps pydantic from reading what we do not: `1_000` and ` 12 ` as numbers, `yes` and 1 as true."""

    value: object


def _or_unfit(value: object, *fitting: type[object]) -> object:
    return value if type(value) in fitting else _Unfit(value)


def _is_null(value: object) -> bool:
    return value is None or (isinstance(value, Plain) and value in NULLS)


def _bare(wanted: Any) -> Any:
    """A hint without its Annotated."""
    while typing.get_origin(wanted) is typing.Annotated:
        wanted = typing.get_args(wanted)[0]
    return wanted


def _member(members: tuple[Any, ...], value: object) -> Any:
    """The member of a union that a value's shape points to."""

    def fits(member: Any) -> bool:
        bare = _bare(member)
        origin = typing.get_origin(bare)
        if isinstance(value, Mapping):
            keyed = dataclasses.is_dataclass(bare) and set(value) <= set(_hints(bare))
            return keyed or (isinstance(origin, type) and issubclass(origin, Mapping))
        if isinstance(value, (list, tuple)):
            return origin in (tuple, frozenset)
        return bare in (str, int, float, bool, Setting) or origin is typing.Literal

    if _is_null(value) and type(None) in members:
        return type(None)
    return next((m for m in members if fits(m)), members[0])


def _problem(wanted: Any, error: ErrorDetails, place: Place, given: Iterable[str]) -> Problem:
    """One complaint of pydantic in our words."""
    location, hint = _walk(wanted, error["loc"][1:])
    if hint is None or "[key]" in error["loc"]:
        known = _keys_of(_walk(wanted, location[:-1])[1])
        return _unknown_key(location, place, [k for k in known if len(location) > 1 or k not in given])
    where = place(location)
    name, here = _named(location)
    found = error["input"].value if isinstance(error["input"], _Unfit) else error["input"]
    if error["type"] == "missing":
        return Problem(f"`{name}` is missing{here}", where, do=f"add `{name}:`, {_expected(hint, {})}")
    if error["type"] == "literal_error":
        options = [str(o) for o in typing.get_args(_bare(hint))]
        what = f"`{name}`{here} is {_shown(found)}, expected one of {', '.join(options)}"
        return Problem(what, where, do=near(str(found), options))
    expected = _expected(hint, error.get("ctx", {}))
    return Problem(f"`{name}`{here} is {_shown(found)}, expected {expected}", where, do=f"write {expected}")


def _named(location: Location) -> tuple[str, str]:
    """The last name of a location, and the words for what it stands in."""
    names = [str(part) for part in location] or ["the file"]
    inside = ".".join(names[:-1])
    return names[-1], f" in `{inside}`" if inside else ""


def _unknown_key(location: Location, place: Place, known: Iterable[str]) -> Problem:
    name, here = _named(location)
    return Problem(f"unknown key `{name}`{here}", place(location), do=near(name, known))


def _walk(wanted: Any, location: Iterable[str | int]) -> tuple[Location, Any]:
    """The location without pydantic's own additions (names of union members), and the hint there."""
    real: Location = ()
    hint = wanted
    for part in location:
        inner = _inner(hint, part)
        if inner is not None:
            real, hint = (*real, part), inner
        elif dataclasses.is_dataclass(_bare(hint)):
            return (*real, part), None
    return real, hint


def _inner(hint: Any, part: str | int) -> Any:
    """The hint of one key or position within a hint; None if it has none."""
    bare = _bare(hint)
    origin, inner = typing.get_origin(bare), typing.get_args(bare)
    if origin in (Union, types.UnionType):
        return next((found for m in inner if (found := _inner(m, part)) is not None), None)
    if dataclasses.is_dataclass(bare):
        return _hints(bare).get(str(part)) if part != "source" else None
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return inner[1] if isinstance(part, str) and part != "[key]" else None
    return inner[0] if origin in (tuple, frozenset) and isinstance(part, int) else None


def _keys_of(hint: Any) -> list[str]:
    """What may stand as a key there."""
    bare = _bare(hint)
    if dataclasses.is_dataclass(bare):
        return [name for name in _hints(bare) if name != "source"]
    inner = typing.get_args(bare)
    return [str(name) for name in typing.get_args(_bare(inner[0]))] if inner else []


def _expected(hint: Any, context: Mapping[str, Any]) -> str:
    """What a hint asks for, in words."""
    bare = _bare(hint)
    origin, inner = typing.get_origin(bare), typing.get_args(bare)
    bounds = {**_bounds(hint), **context}
    if bare is int and {"ge", "le"} <= bounds.keys():
        return f"a whole number from {bounds['ge']} to {bounds['le']}"
    if bare is int:
        return "a whole number" + (f" of at least {bounds['ge']}" if "ge" in bounds else "")
    if origin in (Union, types.UnionType):
        return " or ".join(_expected(m, {}) for m in inner if m is not type(None))
    if origin is typing.Literal:
        return "one of " + ", ".join(str(o) for o in inner)
    if origin in (tuple, frozenset):
        return "a list"
    words = {bool: "true or false", float: "a number", str: "text"}
    return words.get(bare, "keys and values")


def _bounds(hint: Any) -> dict[str, Any]:
    """Ge and Le of an Annotated hint."""
    notes = typing.get_args(hint)[1:] if typing.get_origin(hint) is typing.Annotated else ()
    return {key: getattr(note, key) for note in notes for key in ("ge", "le") if hasattr(note, key)}


def _shown(value: object) -> str:
    """A found value, short."""
    if _is_null(value):
        return "empty"
    if isinstance(value, Mapping):
        return "keys and values"
    if isinstance(value, (list, tuple, frozenset)):
        return "a list"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{text if len(text) <= 40 else text[:37] + '...'}`"


def _hints(wanted: Any) -> dict[str, Any]:
    """Field → type of a dataclass."""
    return _hints_once(wanted)


def _adapter(wanted: Any) -> pydantic.TypeAdapter[tuple[Any]]:
    """Pydantic's validator of a type."""
    return _adapter_once(wanted)


@functools.cache
def _hints_once(wanted: Any) -> dict[str, Any]:
    return typing.get_type_hints(wanted, include_extras=True)


@functools.cache
def _adapter_once(wanted: Any) -> pydantic.TypeAdapter[tuple[Any]]:
    # The tuple is there because pydantic takes no configuration for a bare dataclass.
    config = pydantic.ConfigDict(extra="forbid", use_attribute_docstrings=True)
    return pydantic.TypeAdapter(tuple[wanted], config=config)
