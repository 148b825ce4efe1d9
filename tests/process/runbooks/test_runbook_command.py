"""`runbook run` as a command: where it stops, and where it goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from samples import ROOT

MINE = (
    "title: t\ntarget: instance\nseen: [s]\nwho: w\ndanger: d\nescalate: e\n"
    "steps:\n"
    "  - {say: Look., expect: No errors., do: dsv32-launch lint, exits: [0, 3]}\n"
    "  - {say: Do., expect: It is done., by_hand: 'Turn {{instance}} by hand.'}\n"
    "  - {say: See., expect: It is told., do: dsv32-launch runs}\n"
)


def launch(folder: Path, *words: str) -> tuple[int, str, str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DSV32_")}
    done = subprocess.run(
        [sys.executable, "-m", "launcher.cli.main", "runbook", "run", *words, "-i", "prod.yaml", "--yes"],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT), "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder with an inventory, and a runbook of its own."""
    folder = tmp_path / "mine/configs/runbooks"
    folder.mkdir(parents=True)
    (folder / "turn.yaml").write_text(MINE)
    (tmp_path / "prod.yaml").write_text((ROOT / "inventories/prod-2p1d.yaml").read_text())
    return tmp_path


def test_a_run_stops_at_what_nobody_confirms_and_goes_on_there(mine: Path) -> None:
    words = ("turn", "decode-0", "--data-dir", "mine")
    code, _, told = launch(mine, *words)
    assert code == 1, told
    assert "turn, step 2: this is done by hand, and nobody says that it is" in told
    assert "Turn decode-0 by hand." in told
    assert "do     do it, then dsv32-launch runbook run turn decode-0 --done '2'\n" in told

    code, out, told = launch(mine, *words, "--done", "2", "--json")
    assert code == 0, told
    kinds = [json.loads(line)["type"] for line in out.splitlines()]
    assert "lint" not in kinds, "step 1 was done before"
    assert (kinds.count("run"), kinds[-1]) == (2, "runbook")

    assert launch(mine, *words)[0] == 1, "after its end it begins anew"
