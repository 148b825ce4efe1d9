"""Values → dataclasses by their type hints, with every Problem at once; knows nothing of our domain."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import types
import typing
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar, Union

import pydantic
from pydantic_core import ErrorDetails

from launcher.load.document import Document, Location
from launcher.load.shape import PLACES, Place, Unfit, bare, hints_of, is_null, members_of, shape
from launcher.model.problem import InputError, Problem
from launcher.model.profile import Setting

__all__ = ["Place", "fill", "filled", "json_schema", "near"]

T = TypeVar("T")

READABLE = 20
"""So many names are listed to who wrote an unknown one; the longest list of keys that people write has 17."""


def fill(wanted: type[T], values: object, *, place: Place, given: Mapping[str, object] | None = None) -> T:
    """Makes a `wanted` (a dataclass, or a type made of such) from a document's values or plain ones.

    Text becomes what the field's type says: a number, true/false, JSON in a Setting. A field called
    `source` is never read: it gets the place of its mapping, and one called `places` those of the keys that
    are written in it; fields in `given` are not read either.
    InputError with all Problems at once.
    """
    given = given or {}
    ready = shape(wanted, values, (), place)
    problems: list[Problem] = []
    if isinstance(ready, dict):
        known = [k for k in _keys_of(wanted) if k not in given]
        problems = [_unknown_key((k,), place, known) for k in given if k in ready]
        ready |= given
    try:
        made = _adapter(wanted).validate_python((ready,))[0]
    except pydantic.ValidationError as error:
        problems += _problems(wanted, error.errors(include_url=False), place, given)
    if problems:
        raise InputError(*dict.fromkeys(problems))
    return typing.cast("T", made)


def filled(
    wanted: type[T], document: Document, at: Location = (), *, without: str = "", **given: Hashable
) -> T:
    """`fill` from a document, or from the value at `at` in it; `without`: a key there that is read elsewhere.

    What was made once of a document is given again.
    """
    kind: Any = wanted  # mypy takes no type for hashable
    return typing.cast("T", _filled_once(kind, document, at, without, tuple(given.items())))


@functools.lru_cache(maxsize=4096)
def _filled_once(
    wanted: Any, document: Document, at: Location, without: str, given: tuple[tuple[str, Hashable], ...]
) -> Any:
    value: Any = document.values
    for part in at:
        value = value[part]
    if without and isinstance(value, dict):
        value = {key: inner for key, inner in value.items() if key != without}
    return fill(wanted, value, place=lambda inside: document.place((*at, *inside)), given=dict(given))


def json_schema(wanted: type[Any], *, title: str) -> dict[str, Any]:
    """JSON Schema of the files a `wanted` is filled from; editors complete and check with it."""
    whole = _adapter(wanted, described=True).json_schema()
    kinds: dict[str, Any] = whole["$defs"]
    for kind in kinds.values():
        for name in PLACES:
            kind.get("properties", {}).pop(name, None)
            if name in kind.get("required", ()):
                kind["required"].remove(name)
    kinds[Setting.__name__] = {"description": "Text, true or false, empty (removes it), or JSON."}
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": title, **whole["prefixItems"][0], "$defs": kinds}


def near(word: str, known: Iterable[str]) -> str:
    """The way out for an unknown word: what was probably meant, and what there is."""
    names = sorted(known)
    if not names:
        return "there is none to choose from"
    meant = difflib.get_close_matches(word, names, n=1)
    guess = [f"did you mean `{meant[0]}`?"] if meant else []
    if len(names) <= READABLE:
        guess.append(f"known: {', '.join(names)}")
    return " ".join(guess) or f"none of the {len(names)} known names is near it"


def _problems(
    wanted: Any, errors: Iterable[ErrorDetails], place: Place, given: Iterable[str]
) -> Iterator[Problem]:
    """All complaints; where a union has one about its form and one about its inside, the latter."""
    located = [(_walk(wanted, error["loc"][1:])[0], error) for error in errors]
    for location, error in located:
        if not any(location == other[: len(location)] != other for other, _ in located):
            yield _problem(wanted, error, place, given)


def _problem(wanted: Any, error: ErrorDetails, place: Place, given: Iterable[str]) -> Problem:
    """One complaint of pydantic in our words."""
    location, hint = _walk(wanted, error["loc"][1:])
    if hint is None or "[key]" in error["loc"]:
        known = _keys_of(_walk(wanted, location[:-1])[1])
        return _unknown_key(location, place, [k for k in known if len(location) > 1 or k not in given])
    where = place(location)
    name, here = _named(location)
    found = error["input"].value if isinstance(error["input"], Unfit) else error["input"]
    if error["type"] == "missing":
        return Problem(f"`{name}` is missing{here}", where, do=f"add `{name}:`, {_expected(hint)}")
    if error["type"] == "literal_error":
        options = [str(o) for o in typing.get_args(bare(hint))]
        what = f"`{name}`{here} is {_shown(found)}, expected one of {', '.join(options)}"
        meant = difflib.get_close_matches(str(found), options, n=1)
        return Problem(what, where, do=f"did you mean `{meant[0]}`?" if meant else "write one of these")
    if error["type"] == "value_error":
        return Problem(f"`{name}`{here}: {error['ctx']['error']}", where, do="correct it")
    if error["type"] == "too_short":
        least = error["ctx"]["min_length"]
        return Problem(f"`{name}`{here} has too few entries, expected {least} or more", where, do="add to it")
    expected = _rule(hint) if error["type"] == "predicate_failed" else _expected(hint)
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
    named = False
    for part in location:
        if part == "[key]":
            continue
        if not named and len(members_of(hint)) > 1:
            named = True
            continue
        named = False
        inner = _inner(hint, part)
        if inner is None:
            return (*real, part), None
        real, hint = (*real, part), inner
    return real, hint


def _inner(hint: Any, part: str | int) -> Any:
    """The hint of one key or position within a hint; None if it has none."""
    core = bare(hint)
    origin, inner = typing.get_origin(core), typing.get_args(core)
    if origin in (Union, types.UnionType):
        return next((found for m in members_of(hint) if (found := _inner(m, part)) is not None), None)
    if dataclasses.is_dataclass(core):
        return hints_of(core).get(str(part)) if part not in PLACES else None
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return inner[1] if isinstance(part, str) and part != "[key]" else None
    return inner[0] if origin in (tuple, frozenset) and isinstance(part, int) else None


def _keys_of(hint: Any) -> list[str]:
    """What may stand as a key there."""
    core = bare(hint)
    if dataclasses.is_dataclass(core):
        return [name for name in hints_of(core) if name not in PLACES]
    inner = typing.get_args(core)
    return [str(name) for name in typing.get_args(bare(inner[0]))] if inner else []


def _expected(hint: Any) -> str:
    """What a hint asks for, in words."""
    core = bare(hint)
    origin, inner = typing.get_origin(core), typing.get_args(core)
    bounds = _bounds(hint)
    if core is int and {"ge", "le"} <= bounds.keys():
        return f"a whole number from {bounds['ge']} to {bounds['le']}"
    if core is int:
        return "a whole number" + (f" of at least {bounds['ge']}" if "ge" in bounds else "")
    if origin in (Union, types.UnionType):
        return " or ".join(map(_expected, members_of(hint)))
    if origin is typing.Literal:
        return "one of " + ", ".join(str(o) for o in inner)
    if origin in (tuple, frozenset):
        return "a list"
    if core is float and "gt" in bounds:
        return f"a number above {bounds['gt']}"
    words = {bool: "true or false", float: "a number", str: "text"}
    return words.get(core, "keys and values")


def _rule(hint: Any) -> str:
    """What a Predicate of an Annotated hint asks for: the first sentence of its function's docstring."""
    notes = typing.get_args(hint)[1:] if typing.get_origin(hint) is typing.Annotated else ()
    texts = [inspect.getdoc(note.func) for note in notes if hasattr(note, "func")]
    text = next(filter(None, texts), _expected(hint)).partition("\n")[0].rstrip(".")
    return text[0].lower() + text[1:]


def _bounds(hint: Any) -> dict[str, Any]:
    """Ge, Gt and Le of an Annotated hint."""
    notes = typing.get_args(hint)[1:] if typing.get_origin(hint) is typing.Annotated else ()
    return {key: getattr(note, key) for note in notes for key in ("ge", "gt", "le") if hasattr(note, key)}


def _shown(value: object) -> str:
    """A found value, short."""
    if is_null(value):
        return "empty"
    if isinstance(value, Mapping):
        return "keys and values"
    if isinstance(value, (list, tuple, frozenset)):
        return "a list"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{text if len(text) <= 40 else text[:37] + '...'}`"


def _adapter(wanted: Any, *, described: bool = False) -> pydantic.TypeAdapter[tuple[Any]]:
    """Pydantic's validator of a type; `described`: with the docstrings of its fields, which takes parsing
    sources and so is too slow for every start."""
    return _adapter_once(wanted, described)


@functools.cache
def _adapter_once(wanted: Any, described: bool) -> pydantic.TypeAdapter[tuple[Any]]:
    # The tuple is there because pydantic takes no configuration for a bare dataclass.
    config = pydantic.ConfigDict(extra="forbid", use_attribute_docstrings=described)
    return pydantic.TypeAdapter(tuple[wanted], config=config)
