"""Problems of many readers, gathered so that one pass reports them all; knows nothing of what was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from launcher.model.problem import InputError, Problem

T = TypeVar("T")


class Collector:
    """Goes on after a reader failed, and raises everything at the end, sorted by place."""

    def __init__(self) -> None:
        self._problems: dict[Problem, None] = {}

    def attempt(self, read: Callable[[], T]) -> T | None:
        """What `read` gives, or None after its Problems were kept."""
        try:
            return read()
        except InputError as error:
            self.keep(error.problems)
            return None

    def keep(self, problems: Iterable[Problem]) -> None:
        """Adds Problems; one that is already there counts once."""
        self._problems.update(dict.fromkeys(problems))

    def raise_any(self) -> None:
        """InputError with all Problems kept so far; nothing if there are none."""
        if self._problems:
            raise InputError(*sorted(self._problems, key=by_place))


def by_place(problem: Problem) -> tuple[str, int]:
    """Sorts Problems by file, then line."""
    path, _, line = problem.where.rpartition(":")
    return (path, int(line)) if line.isdigit() else (problem.where, 0)
