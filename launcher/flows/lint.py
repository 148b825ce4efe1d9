"""lint: all that is wrong with an inventory and the data it leads to, without asking a host."""

from __future__ import annotations

from pathlib import Path

from launcher.load import load
from launcher.model.problem import InputError, Problem
from launcher.resolve import resolve


def lint(path: Path, *, data_dir: Path | None = None) -> tuple[Problem, ...]:
    """Every Problem of the files, or else every Problem of what they add up to. Secrets stay closed."""
    try:
        resolve(load(path, data_dir=data_dir))
    except InputError as error:
        return error.problems
    return ()
