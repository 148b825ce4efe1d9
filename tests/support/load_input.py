"""An inventory that loads, its data, and what a changed one comes to."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from samples import ROOT

from launcher.load import Data, load_from
from launcher.model.problem import InputError
from launcher.model.wish import Wish

INPUT = ROOT / "tests/fast/load/input"
GOOD = (INPUT / "good.yaml").read_text()


def copied(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with a copy of the data: the user's home and the place of the inventory at once."""
    monkeypatch.setenv("HOME", str(folder))
    shutil.copytree(INPUT / "data", folder / "data")
    return folder


def loaded(folder: Path, text: str, environment: dict[str, str] | None = None) -> Wish:
    """The wish of an inventory of this text."""
    (folder / "x.yaml").write_text(text)
    return load_from(Data([folder / "data"]), folder / "x.yaml", environment=environment)


def wrong(folder: Path, text: str, environment: dict[str, str] | None = None) -> list[str]:
    """What is wrong with it: `x.yaml:3 what`."""
    with pytest.raises(InputError) as caught:
        loaded(folder, text, environment)
    return [f"{p.where.rpartition('/')[2]} {p.what}" for p in caught.value.problems]
