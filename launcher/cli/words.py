"""Words that several views share: ranges of hosts, problems as text; knows no terminal."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from launcher.load.ranges import host_range
from launcher.model.problem import Problem

EXIT_CODES = (
    "exit codes: 0 done or nothing to do · 1 hosts failed · 2 input wrong, errors (lint) · "
    "3 changes (plan), warnings (lint, check), cannot tell (bench, gate) · 4 locked · "
    "5 SLA missed, or worse than its baseline · 6 plan stale or surprise · 130 interrupted"
)


def all_places(places: Sequence[str]) -> str:
    """Hosts as ranges; file lines and units one after another."""
    plain = all(re.fullmatch(r"[\w.-]+", p) for p in places)
    return host_range(places) if plain else "; ".join(dict.fromkeys(places))


def count(number: int, thing: str) -> str:
    """`1 host`, `3 hosts`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def grouped(problems: Sequence[Problem]) -> Iterator[tuple[Problem, tuple[str, ...]]]:
    """Each different problem once, with all its places, in the order in which they first appear."""
    places: dict[tuple[str, str, str, str], list[Problem]] = {}
    for p in problems:
        places.setdefault((p.what, p.why, p.do, p.more), []).append(p)
    for same in places.values():
        yield same[0], tuple(p.where for p in same if p.where)


def problem_lines(problems: Sequence[Problem], *, severity: str = "error") -> Iterator[str]:
    """Problems as a person reads them: what, then where, why and what to do, each on its line."""
    for problem, places in grouped(problems):
        yield f"{severity}: {problem.what}"
        rows = (
            ("where", all_places(places)),
            ("why", problem.why),
            ("do", problem.do),
            ("more", problem.more),
        )
        for word, text in rows:
            if text:
                first, *rest = text.splitlines()
                yield f"  {word:<6} {first}"
                yield from (f"         {line}" for line in rest)


def columns(rows: Sequence[Sequence[str]], *, left: Collection[str]) -> str:
    """A table under its heads, the first row, columns as wide as they must be. Those of `left` are text; all
    others are numbers, and stand at the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = (
        "  ".join(
            cell.ljust(width) if head in left else cell.rjust(width)
            for head, cell, width in zip(rows[0], row, widths, strict=True)
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)
