"""Small words of messages: how many of what; knows nothing else."""

from __future__ import annotations


def count(number: int, word: str) -> str:
    """A number with its noun.

    >>> count(1, "host"), count(2, "address")
    ('1 host', '2 addresses')
    """
    return f"{number} {word}" if number == 1 else f"{number} {word}{'es' if word.endswith('s') else 's'}"
