"""Texts of a step: their digests and bounded diffs."""

from __future__ import annotations

import hashlib
from difflib import unified_diff
from itertools import islice

LINES_SHOWN = 200
"""Lines of one diff that a plan carries; a reviewer reads no more."""


def data(content: str | bytes) -> bytes:
    """The bytes of a content."""
    return content.encode() if isinstance(content, str) else content


def digest(*contents: str | bytes) -> str:
    """sha256 over the contents, in order."""
    return hashlib.sha256(b"\0".join(map(data, contents))).hexdigest()


def diff(before: str, after: str, path: str) -> str:
    """Unified diff of two texts of one path, at most `LINES_SHOWN` lines of it."""
    lines = unified_diff(before.splitlines(), after.splitlines(), path, path, lineterm="")
    shown = list(islice(lines, LINES_SHOWN + 1))
    if len(shown) > LINES_SHOWN:
        shown[LINES_SHOWN] = f"… cut after {LINES_SHOWN} lines"
    return "\n".join(shown)
