"""An apt that knows one folder of packages, and nothing of the machine's own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def made(state: Path) -> Path:
    """Its configuration, for APT_CONFIG, and what that names."""
    for part in ("lists/partial", "cache/archives/partial", "parts"):
        (state / part).mkdir(parents=True)
    (state / "status").touch()
    config = state / "apt.conf"
    config.write_text(
        f'Dir::Etc::sourcelist "{state}/sources.list";\nDir::Etc::sourceparts "{state}/parts";\n'
        f'Dir::Etc::preferencesparts "{state}/parts";\nDir::State::lists "{state}/lists";\n'
        f'Dir::State::status "{state}/status";\nDir::Cache "{state}/cache";\nAPT::Sandbox::User "root";\n'
    )
    return config


def know(config: Path, folder: Path) -> None:
    """Have it know that folder, by the index in it."""
    (config.parent / "sources.list").write_text(f"deb [trusted=yes] file:{folder} ./\n")
    told = {**os.environ, "APT_CONFIG": str(config)}
    subprocess.run(["apt-get", "update", "-qq"], check=True, capture_output=True, env=told)
