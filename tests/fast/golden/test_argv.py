"""Command lines and environments of the sample inventories, each value with the line that set it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from samples import SAMPLES, sample

from launcher.cli.explaintext import explain_text
from launcher.flows.explain import known_of, tell
from launcher.resolve import resolve


@pytest.mark.parametrize("name", SAMPLES)
def test_command_lines(name: str, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    wanted = resolve(sample(name, tmp_path))
    assert wanted.deployment is not None
    routers = ["router"] if wanted.deployment.routers else []
    subjects = [*(i.name for i in wanted.deployment.instances), *routers]
    known = known_of(wanted)
    shown = explain_text(topic for subject in subjects for topic in tell(known, subject)) + "\n"
    # another lock file is another environment folder, and nothing else
    golden(f"{name}/argv.txt", shown.replace(wanted.deployment.environment_path, "ENVIRONMENT"))
