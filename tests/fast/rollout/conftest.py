"""Two things to want of one service, whose engines cannot serve together."""

from __future__ import annotations

from pathlib import Path

import pytest
from moving_tables import known, next_of
from routed_tables import routed_wanted

from launcher.model.wish import Wanted


@pytest.fixture
def before(tmp_path: Path) -> Wanted:
    return known(routed_wanted(tmp_path))


@pytest.fixture
def after(before: Wanted, tmp_path: Path) -> Wanted:
    return next_of(tmp_path)
