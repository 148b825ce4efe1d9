"""edit_text: the lines of a file that change, as a person reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from launcher.load.edit import Lines


def edit_text(changes: Iterable[Lines]) -> str:
    """Place, old lines, new lines; empty for no change."""
    return "\n".join(line for change in changes for line in _rows(change))


def _rows(change: Lines) -> Iterator[str]:
    yield change.place
    yield from (f"  - {line}" for line in change.before)
    yield from (f"  + {line}" for line in change.after)
