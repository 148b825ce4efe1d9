"""Text of which parts cannot be told: they stand between two marks, as written; knows no syntax."""

from __future__ import annotations

import re
from collections.abc import Iterable

from launcher.model.launch import Unknown

OPEN, CLOSE, CHOICE = "\ue000", "\ue001", "\ue002"
"""Private-use characters: no file that is read keeps its own (`clean`)."""
INNER_OPEN, INNER_CLOSE = "\ue003", "\ue004"
"""Marks within a choice."""
MARKED = re.compile(f"{OPEN}[^{CLOSE}]*{CLOSE}")
CHOICES = re.compile(f"{CHOICE}[^{CLOSE}]*")
OURS = re.compile("[\ue000-\ue004]")
MOST_CHOICES = 16
LONGEST_CHOICES = 1 << 13
"""Characters of all choices together; beyond either bound none are kept, and the part may be anything."""


def clean(text: str) -> str:
    """A file's text as all forms read it: lines end in a line feed, and no character is one of our marks."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    return OURS.sub("\ufffd", text)


def unresolved(written: str, choices: Iterable[str] = ()) -> str:
    """A part that cannot be told, as it was written. It is one of `choices` where there are any.

    >>> told("--port=" + unresolved("$PORT"))
    False
    """
    flat = tuple(dict.fromkeys(MARKED.sub(_inner, choice) for choice in choices))
    if len(flat) > MOST_CHOICES or sum(map(len, flat)) > LONGEST_CHOICES:
        flat = ()
    return f"{OPEN}{bare(written)}{''.join(CHOICE + choice for choice in flat)}{CLOSE}"


def choices(text: str) -> tuple[str, ...]:
    """What a text that is one mark may be; empty: anything, or the text is no single mark.

    >>> choices(unresolved("$X", ["", "--port 1"])), choices(unresolved("$X")), choices("--port")
    (('', '--port 1'), (), ())
    """
    if not MARKED.fullmatch(text):
        return ()
    _, *inner = text[1:-1].split(CHOICE)
    return tuple(choice.replace(INNER_OPEN, OPEN).replace(INNER_CLOSE, CLOSE) for choice in inner)


def _inner(mark: re.Match[str]) -> str:
    """A mark within a choice: all that it may be together, or itself where it is one value, or anything."""
    inner = choices(mark[0])
    values = all(len(choice.split()) < 2 and not choice.lstrip().startswith("-") for choice in inner)
    text = CHOICES.sub("", mark[0]) if values else " ".join(inner)
    return text.replace(OPEN, INNER_OPEN).replace(CLOSE, INNER_CLOSE)


def told(text: str) -> bool:
    """Is all of it known?"""
    return OPEN not in text


def bare(text: str) -> str:
    """As it was written, without marks."""
    return OURS.sub("", CHOICES.sub("", text))


def value(text: str) -> str:
    """Text for a Setting: `Unknown` if a part of it cannot be told."""
    return text if told(text) else Unknown(bare(text))
