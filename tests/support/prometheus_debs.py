"""Prometheus and its tools, out of the packages that sandbox hosts get; nothing is installed here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

DEBS = Path(os.environ.get("DSV32_SANDBOX_DIR", "/var/tmp/dsv32-sandbox")) / "gpfs/stacks/sandbox-cpu/debs"


def extracted(folder: Path) -> Path:
    """The folder with promtool, amtool, prometheus and prometheus-alertmanager."""
    packages = [
        next(iter(DEBS.glob(f"{name}_*.deb")), None) for name in ("prometheus", "prometheus-alertmanager")
    ]
    for package in packages:
        if package is None:
            pytest.skip("no Prometheus to test with: dsv32-launch sandbox stock")
        subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True, timeout=60)
    return folder / "usr/bin"
