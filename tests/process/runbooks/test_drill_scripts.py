"""configs/drills: what they run on hosts is shell."""

from __future__ import annotations

import subprocess

import pytest

from launcher.load.data import Data, shipped
from launcher.load.drills import read_drills
from launcher.model.drill import Drill

DRILLS = read_drills(Data((shipped(),)))


@pytest.mark.parametrize("drill", DRILLS.values(), ids=lambda d: d.id)
def test_scripts_are_shell(drill: Drill) -> None:
    for act in (*drill.plant, *drill.lift):
        done = subprocess.run(["sh", "-n"], input=act.script, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
