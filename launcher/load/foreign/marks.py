"""Text of which parts cannot be told: they stand between two marks, as written; knows no syntax."""

from __future__ import annotations

import re

from launcher.model.launch import Unknown

OPEN, CLOSE = "\ue000", "\ue001"
"""Private-use characters: no file that is read keeps its own (`clean`)."""
MARKED = re.compile(f"{OPEN}[^{CLOSE}]*{CLOSE}")


def clean(text: str) -> str:
    """A file's text as all forms read it: lines end in a line feed, and no character is one of our marks."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    return text.replace(OPEN, "\ufffd").replace(CLOSE, "\ufffd")


def unresolved(written: str) -> str:
    """A part that cannot be told, as it was written.

    >>> told("--port=" + unresolved("$PORT"))
    False
    """
    return f"{OPEN}{bare(written)}{CLOSE}"


def told(text: str) -> bool:
    """Is all of it known?"""
    return OPEN not in text


def bare(text: str) -> str:
    """As it was written, without marks."""
    return text.replace(OPEN, "").replace(CLOSE, "")


def value(text: str) -> str:
    """Text for a Setting: `Unknown` if a part of it cannot be told."""
    return text if told(text) else Unknown(bare(text))
