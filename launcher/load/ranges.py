"""`gpu[01-06]` → its six names, in order, and names back to ranges."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

RANGE = re.compile(r"\[(\d+)-(\d+)\]")
MOST = 4096
"""Names one text may stand for: a slip of the finger must not fill the memory."""


def expand(text: str) -> tuple[str, ...]:
    """All texts that one with ranges stands for; the last range turns fastest. ValueError says what is wrong.

    >>> expand("gpu[08-10]")
    ('gpu08', 'gpu09', 'gpu10')
    >>> expand("gpu01")
    ('gpu01',)
    """
    fixed: list[str] = []
    turning: list[list[str]] = []
    end = 0
    count = 1
    for found in RANGE.finditer(text):
        first, last = found.groups()
        if int(last) < int(first):
            raise ValueError(f"range `{found[0]}` runs backwards")
        count *= int(last) - int(first) + 1
        if len(last) > 9 or count > MOST:
            raise ValueError(f"`{text}` stands for more than {MOST} names")
        width = len(first) if first.startswith("0") else 0
        fixed.append(text[end : found.start()])
        turning.append([str(number).zfill(width) for number in range(int(first), int(last) + 1)])
        end = found.end()
    rest = text[end:]
    if "[" in "".join(fixed) + rest or "]" in rest:
        raise ValueError(f"`{text}` holds a range that cannot be read")
    return tuple(
        "".join(part for pair in zip(fixed, turn, strict=True) for part in pair) + rest
        for turn in itertools.product(*turning)
    )


def host_range(hosts: Iterable[str]) -> str:
    """`gpu01–gpu04, gpu07`: names that count up, written as ranges."""
    names = sorted(set(hosts), key=lambda n: (re.sub(r"\d+$", "", n), len(n), n))

    def place(item: tuple[int, str]) -> tuple[str, int]:
        number = re.search(r"\d+$", item[1])
        stem = item[1][: number.start()] if number else item[1]
        return stem, int(number.group()) - item[0] if number else -1

    runs = ([name for _, name in run] for _, run in itertools.groupby(enumerate(names), key=place))
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
