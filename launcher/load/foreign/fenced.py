"""Markdown → the texts of its fenced code blocks, with the lines where they begin."""

from __future__ import annotations

import re
import textwrap

FENCE = re.compile(
    r"^([ \t]*)(`{3,}|~{3,})[ \t]*([\w+-]*)[^\n`]*\n(.*?)(?:^[ \t]*\2[`~]*[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
SHELL = ("", "bash", "sh", "shell", "console", "zsh", "text")
PROMPT = re.compile(r"^[$#>] (?=\S)", re.MULTILINE)


def is_fenced(text: str) -> bool:
    """Has it a fenced block, and words outside of it?"""
    return FENCE.search(text) is not None


def blocks(text: str) -> list[tuple[str, int]]:
    """(text, line of its first line) of blocks that are shell, or YAML, or say no language."""
    found: list[tuple[str, int]] = []
    for block in FENCE.finditer(text):
        language = block[3].lower()
        if language in SHELL or language in ("yaml", "yml", "ini", "systemd"):
            line = text.count("\n", 0, block.start(4)) + 1
            body = textwrap.dedent(block[4])
            found.append((PROMPT.sub("", body) if language in SHELL else body, line))
    return found
