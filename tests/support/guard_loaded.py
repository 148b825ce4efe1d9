"""The guard's own file as a module: it is no part of the package, it is copied to hosts."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

GUARD = Path(__file__).parents[2] / "roles/guard/files/guard.py"


def guard_module(*changed: tuple[str, str]) -> ModuleType:
    """A fresh one, with each of these texts in place of another, which must be there once."""
    source = GUARD.read_text()
    for text, other in changed:
        assert source.count(text) == 1, text
        source = source.replace(text, other)
    module = ModuleType("guard")
    exec(compile(source, str(GUARD), "exec"), vars(module))
    return module
