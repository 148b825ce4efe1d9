"""What several of these tests take."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from samples import ROOT


@pytest.fixture(scope="session")
def peers() -> Iterator[ModuleType]:
    """The program of role weights that chooses which block from whom."""
    folder = str(ROOT / "roles/weights/files")
    sys.path.insert(0, folder)
    try:
        import weights_peers

        yield weights_peers
    finally:
        sys.path.remove(folder)
