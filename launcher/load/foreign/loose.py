"""YAML of any shape → the texts and lists in it that start a server; knows no kind of file."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from launcher.load.document import Document, Location, Value
from launcher.load.foreign.expand import Word
from launcher.load.foreign.starts import BEGINS
from launcher.load.foreign.words import MOST_VALUES, words_of

FLAG = re.compile(r"(?<!\\)\n(?=[ \t]*--?\w)")
"""The end of a line before one that begins with a flag."""


def commands(document: Document) -> Iterator[tuple[list[Word], tuple[str, ...]]]:
    """(words, keys around them, the nearest first): one word is a script, several are a command's."""
    pending: deque[tuple[Value, Location]] = deque([(document.values, ())])
    seen = 0
    while pending and seen < MOST_VALUES:
        value, location = pending.popleft()
        seen += 1
        words = words_of(value, location, document)
        texts = " ".join(word.text for word in words)
        if words and BEGINS.search(texts) and (isinstance(value, str) or not _inside(words)):
            yield [_joined(word) for word in words], tuple(str(key) for key in reversed(location))
        elif isinstance(value, dict):
            pending += [(inner, (*location, key)) for key, inner in value.items()]
        elif isinstance(value, list):
            pending += [(inner, (*location, index)) for index, inner in enumerate(value)]


def _joined(word: Word) -> Word:
    """Programs that read such files split their commands at any blank, also where a shell would end one."""
    return Word(FLAG.sub("\\\n", word.text), word.line)


def _inside(words: list[Word]) -> bool:
    """Is it a script within one of them?"""
    return any(BEGINS.search(word.text) and re.search(r"\s", word.text.strip()) for word in words)
