"""The guard's own file as a module: it is no part of the package, it is copied to hosts."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

GUARD = Path(__file__).parents[2] / "roles/guard/files/guard.py"


def guard_module() -> ModuleType:
    """A fresh one, for a test may change it."""
    spec = importlib.util.spec_from_file_location("guard", GUARD)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["guard"] = module  # NamedTuple looks its own module up
    spec.loader.exec_module(module)
    return module
