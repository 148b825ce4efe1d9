"""YAML values and quoted texts as words of a command line; knows the lines of literal blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.load.document import Block, Document, Location, Value
from launcher.load.foreign.expand import Word

MOST_VALUES = 100_000
"""A document whose aliases make it larger than this is not walked to its end."""
PIECE = re.compile(r"""\s*((?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\\.|[^\s"'\\])+)""", re.DOTALL)
"""A word with its quotes, as systemd and Compose split a line."""
PART = re.compile(r""""((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|((?:\\.|[^"'\\])+)""", re.DOTALL)


def text_of(value: Value | None) -> str:
    """A scalar's text; empty for anything else."""
    return str(value) if isinstance(value, str) else ""


def words_of(value: Value | None, location: Location, document: Document) -> list[Word]:
    """A list's words, or one text as one word, with the lines where they begin."""
    if isinstance(value, list):
        return [
            Word(str(v), _line(v, (*location, i), document))
            for i, v in enumerate(value)
            if isinstance(v, str)
        ]
    return [Word(str(value), _line(value, location, document))] if isinstance(value, str) else []


def split(word: Word) -> Iterator[Word]:
    """A text as the words that its quotes make."""
    for piece in PIECE.finditer(word.text):
        if piece[1] != "\\\n":
            yield Word(unquoted(piece[1]), word.line + word.text.count("\n", 0, piece.start(1)))


def unquoted(written: str) -> str:
    """Quotes removed, wherever in the word they stand, and escapes read.

    >>> unquoted('--x="a b"'), unquoted("'{\\"k\\": 1}'")
    ('--x=a b', '{"k": 1}')
    """
    text = ""
    for double, single, plain in PART.findall(written):
        text += re.sub(r"\\(.)", r"\1", double or single or plain, flags=re.DOTALL)
    return text


def _line(value: str, location: Location, document: Document) -> int:
    return document.line(location) + isinstance(value, Block)
