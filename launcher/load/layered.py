"""A layout's values, parts laid over them, and the text of the file that they make; knows no key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from launcher.load.document import Location, Plain
from launcher.model.values import Json

BARE = re.compile(r"[A-Za-z_][\w./-]*|-?\d+(\.\d+)?")
"""Text that YAML reads as itself."""
WORDS = ("true", "false", "null", "yes", "no", "on", "off")
WIDE = 100
"""Characters of a mapping in brackets; wider ones have a line for each key."""


def overlaid(values: Mapping[str, Json], edit: Mapping[str, Json]) -> dict[str, Json]:
    """The edit over the values: mappings merge by key, all else replaces.

    >>> overlaid({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}})
    {'a': {'x': 1, 'y': 3}}
    """
    made = dict(values)
    for key, value in edit.items():
        inside = made.get(key)
        both = isinstance(inside, dict) and isinstance(value, dict)
        made[key] = overlaid(inside, value) if both else value  # type: ignore[arg-type]
    return made


def locations(values: Mapping[str, Json], at: Location = ()) -> Iterator[Location]:
    """Where a line of the file would stand for each thing of an edit."""
    for key, value in values.items():
        if isinstance(value, dict) and len(at) < 2:
            yield from locations(value, (*at, key))
        else:
            yield (*at, key)


def layout_text(values: Mapping[str, Json], *, head: Sequence[str], notes: Mapping[Location, str]) -> str:
    """A YAML file: `head` as comments above, each note as a comment behind its line."""
    lines = [f"# {line}" for line in head]
    return "\n".join((*lines, *_block(values, (), notes))) + "\n"


def _block(values: Mapping[str, Json], at: Location, notes: Mapping[Location, str]) -> Iterator[str]:
    indent = "  " * len(at)
    for key, value in values.items():
        here, name = (*at, key), _scalar(key)
        note = f" # {notes[here]}" if here in notes else ""
        flow = _flow(value)
        wide = len(indent) + len(name) + len(flow) > WIDE
        if isinstance(value, dict) and value and (len(here) < 3 or wide):
            yield f"{indent}{name}:{note}"
            yield from _block(value, here, notes)
        else:
            yield f"{indent}{name}: {flow}{note}"


def _flow(value: Json) -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{_scalar(str(k))}: {_flow(v)}" for k, v in value.items())
        return "{" + inside + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(v) for v in value) + "]"
    return _scalar(value)


def _scalar(value: Json) -> str:
    """Text that had quotes keeps them where they matter: `"0"` is not the number 0."""
    if value is None:
        return "~"
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    text = str(value)
    quoted = not isinstance(value, Plain) and (text in WORDS or text[:1].isdigit() or text[:1] == "-")
    return (
        json.dumps(text, ensure_ascii=False) if quoted or (not BARE.fullmatch(text) and text != "~") else text
    )
