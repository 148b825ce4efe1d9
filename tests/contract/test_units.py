"""The real systemd reads each unit of ours without a word of complaint."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from releases import deployments

from launcher.steps.turns import units_of
from launcher.steps.unit import unit_file

MACHINE = Path("/lib/systemd/system")
pytestmark = pytest.mark.skipif(
    not (shutil.which("systemd-analyze") and MACHINE.is_dir()), reason="this machine has no systemd"
)
WRONG = """[Unit]
Description=wrong
[Service]
Type=exec
LimitMEMLOK=infinity
ExecStart=/usr/bin/true
"""


def complaints(units: Iterable[tuple[str, str]], root: Path) -> str:
    """What systemd says to (name, text) in a file system where all programs that they name are there."""
    folder = root / "etc/systemd/system"
    folder.mkdir(parents=True)
    shutil.copytree(MACHINE, root / "usr/lib/systemd/system", symlinks=True)
    names = []
    for name, text in units:
        (folder / name).write_text(text)
        names.append(f"etc/systemd/system/{name}")
        for program in re.findall(r"^Exec\w+=[-@:+!]*/(\S+)", text, re.MULTILINE):
            place = root / program
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch(mode=0o755)
    words = ["systemd-analyze", "verify", "--man=no", f"--root={root}", *names]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, cwd=root)
    return ran.stdout + ran.stderr + ("" if ran.returncode == 0 else f"exit {ran.returncode}")


def test_it_reads_every_unit(tmp_path: Path) -> None:
    texts: dict[str, str] = {}
    (tmp_path / "inventories").mkdir()
    for _, wanted in deployments(tmp_path):
        for step in (step for steps in wanted.steps.values() for step in steps):
            for unit in units_of(step.want):
                if (file := unit_file(unit)) and unit.content:
                    texts.setdefault(str(file.content), unit.name)
    kinds = {re.sub(r"(-\d+|-[ab])?\.service$", "", name) for name in texts.values()}
    assert kinds >= {"dsv32-prefill", "dsv32-decode", "dsv32-router", "dsv32-front"}
    # the same unit differs from host to host: each text is a file of its own here
    units = [(f"{n}-{name}", text) for n, (text, name) in enumerate(texts.items())]
    assert complaints(units, tmp_path / "root") == ""


def test_it_looks(tmp_path: Path) -> None:
    assert "LimitMEMLOK" in complaints([("wrong.service", WRONG)], tmp_path)
