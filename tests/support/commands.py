"""Commands of ours as real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from samples import ROOT

PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONPATH": str(ROOT)}


def launch(*words: str, folder: Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """A command of ours, run in `folder` with nothing of this shell but its PATH and the like."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("DSV32_", "FORCE_COLOR"))} | PLAIN
    return subprocess.run(
        [sys.executable, "-m", "launcher.cli.main", *words],
        cwd=folder,
        env=environment,
        input=stdin if stdin is not None else "",
        capture_output=True,
        text=True,
        timeout=120,
    )
