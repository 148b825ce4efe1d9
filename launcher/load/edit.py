"""A document's text with a few values changed, all else as it was; knows YAML's forms, not what they mean."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TypeAlias

from launcher.load.document import Location, Span, Value, parse, survey
from launcher.model.problem import InputError, Problem

PLAIN = re.compile(r"[A-Za-z0-9][\w./-]*")
"""What needs no quotes, in brackets or not."""


@dataclass(frozen=True, slots=True)
class Put:
    """This value of a key, whether the key is there or not; the mapping around it is."""

    location: Location
    value: str


@dataclass(frozen=True, slots=True)
class Append:
    """More items of a list; one text alone becomes a list."""

    location: Location
    items: tuple[str, ...]


Edit: TypeAlias = Put | Append


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a file that are others afterwards."""

    place: str
    """`file:line` of the first."""
    before: tuple[str, ...]
    after: tuple[str, ...]


def edited(text: str, path: str, edits: Sequence[Edit]) -> str:
    """The text after these edits. InputError, which says what to write where, if a form of YAML that is not
    foreseen here would make it read otherwise than meant."""
    before = parse(text, path)
    now, meant = text, before.values
    for edit in edits:
        meant = _meant(meant, edit.location, edit)
        now = _written(now, path, edit)
    try:
        read = parse(now, path).values
    except InputError:
        read = None
    if read != meant:
        raise InputError(*(_by_hand(edit, before.place(edit.location)) for edit in edits))
    return now


def changed_lines(before: str, after: str, path: str) -> tuple[Lines, ...]:
    """What a reader of the file sees changed: line by line where as many stand in place of some."""
    old, new = before.splitlines(), after.splitlines()
    return tuple(
        Lines(f"{path}:{i + 1}", tuple(old[i:j]), tuple(new[k:m]))
        for block in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        for i, j, k, m in _pieces(*block)
    )


def _pieces(kind: str, i: int, j: int, k: int, m: int) -> list[tuple[int, int, int, int]]:
    if kind == "equal":
        return []
    if j - i == m - k:
        return [(i + n, i + n + 1, k + n, k + n + 1) for n in range(j - i)]
    return [(i, j, k, m)]


def _meant(values: Value, rest: Location, edit: Edit) -> Value:
    """The values that the edited text is to have."""
    if not rest:
        if isinstance(edit, Put):
            return edit.value
        return [*(values if isinstance(values, list) else [values]), *edit.items]
    assert isinstance(values, dict), "edits are of keys"
    key = str(rest[0])
    return {**values, key: _meant(values.get(key, ""), rest[1:], edit)}


def _by_hand(edit: Edit, where: str) -> Problem:
    name = ".".join(map(str, edit.location))
    told = edit.value if isinstance(edit, Put) else ", ".join(edit.items)
    do = f"write `{name}: {told}`" if isinstance(edit, Put) else f"add {told} to `{name}`"
    return Problem(
        f"{name} cannot be edited as it is written", where, do=f"{do} by hand, then dsv32-launch up"
    )


def _written(text: str, path: str, edit: Edit) -> str:
    spans = survey(text, path)
    span = spans.get(edit.location)
    if isinstance(edit, Append):
        assert span, "a list that is appended to is there"
        return _appended(text, spans, edit, span)
    if span is None:
        return _inserted(text, spans, edit)
    gap, quoted = " " if span.start == span.end else "", text[span.start : span.start + 1] == '"'
    return text[: span.start] + gap + _word(edit.value, quoted=quoted) + text[span.end :]


def _inserted(text: str, spans: Mapping[Location, Span], edit: Put) -> str:
    """A key that its mapping has not yet: behind a value that is written in one go, else before all keys."""
    around = edit.location[:-1]
    span = spans[around]
    json = text[span.start + 1 : span.end].lstrip()[:1] == '"'
    entry = f"{_word(str(edit.location[-1]), quoted=json)}: {_word(edit.value)}"
    own = [s for at, s in spans.items() if at and at[:-1] == around]
    if span.flow:
        if not own:
            return text[: span.start + 1] + entry + text[span.start + 1 :]
        return _at(text, max(s.end for s in own), f", {entry}")
    ended = [s.end for s in own if _whole(s, text)]
    if not ended:
        return text[: span.start] + entry + _newline(text) + " " * span.column + text[span.start :]
    return _new_line(text, max(ended), span.column, entry)


def _appended(text: str, spans: Mapping[Location, Span], edit: Append, span: Span) -> str:
    last = max((s for at, s in spans.items() if at[:-1] == edit.location), key=lambda s: s.end, default=span)
    told = text[last.start : last.end]
    words = [_word(item, quoted=told[:1] == '"') for item in edit.items]
    if last is span:
        first = told if told[:1] in ("'", '"') else _word(told)
        return text[: span.start] + f"[{', '.join((first, *words))}]" + text[span.end :]
    if span.flow:
        return _at(text, last.end, "".join(f", {word}" for word in words))
    for word in reversed(words):
        text = _new_line(text, last.end, span.column, f"- {word}")
    return text


def _whole(span: Span, text: str) -> bool:
    """Does it end where its span says? What has no brackets ends with what follows it."""
    told = text[span.start : span.end]
    return span.flow or not ("\n" in told or told[:1] in ("|", ">", "-"))


def _at(text: str, place: int, more: str) -> str:
    return text[:place] + more + text[place:]


def _new_line(text: str, after: int, column: int, entry: str) -> str:
    """A line below the one in which something ends; a comment behind that stays with it."""
    end = text.find("\n", after)
    end = len(text) if end < 0 else end - (text[end - 1 : end] == "\r")
    return text[:end] + _newline(text) + " " * column + entry + text[end:]


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _word(text: str, *, quoted: bool = False) -> str:
    return f'"{text}"' if quoted or not PLAIN.fullmatch(text) else text
