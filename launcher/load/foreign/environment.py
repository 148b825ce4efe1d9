"""Environment files: `A=b` lines as systemd and Docker read them; knows no shell."""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.load.foreign.expand import Word

LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)=(.*)", re.DOTALL)
QUOTED = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')\s*(?:#.*)?""", re.DOTALL)


def is_environment(text: str) -> bool:
    """Is every line that says anything an assignment, and is there one?"""
    lines = [line for _, line in _lines(text)]
    return bool(lines) and all(LINE.fullmatch(line) for line in lines)


def read_environment(text: str, line: int = 1) -> dict[str, Word]:
    """Name → value with its line, counted from `line`; what is no assignment is passed over.

    >>> read_environment('# c\\nA="b c" # d\\nexport E=f$G\\n')
    {'A': Word(text='b c', line=2), 'E': Word(text='f$G', line=3)}
    """
    found: dict[str, Word] = {}
    for number, written in _lines(text):
        parsed = LINE.fullmatch(written)
        if parsed:
            found[parsed[1]] = Word(_unquoted(parsed[2]), number + line - 1)
    return found


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that say something, by number; one that ends in `\\` goes on in the next."""
    held, first = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        if not held and (not line.strip() or line.lstrip()[0] in "#;"):
            continue
        first = first if held else number
        if line.endswith("\\"):
            held += line[:-1]
            continue
        yield first, held + line
        held = ""
    if held:
        yield first, held


def _unquoted(text: str) -> str:
    quoted = QUOTED.fullmatch(text)
    if quoted is None:
        return text.strip()
    return re.sub(r"\\(.)", r"\1", quoted[1]) if quoted[1] is not None else quoted[2]
