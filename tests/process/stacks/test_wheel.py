"""The wheel, in an environment of its own and outside any checkout, knows its roles and configs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
INVENTORY = """\
cluster: elsewhere
layout: min-1p1d
stack: current
hardware: h200
model: deepseek-v3.2
interface: eth0
paths: {shared: /gpfs, local: /nvme}
hosts:
  gpu[1-2]: {address: "10.0.0.[1-2]"}
pools:
  prefill: {hosts: [gpu1]}
  decode: {hosts: [gpu2]}
  router: {hosts: [gpu1]}
"""


def run(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(w) for w in words], cwd=cwd, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`dsv32-launch` of a wheel that was built from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    built = run(sys.executable, "-c", build, folder, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    assert run(sys.executable, "-m", "venv", folder / "venv", cwd=folder).returncode == 0
    wheel = folder / built.stdout.split()[-1]
    installed = run(folder / "venv/bin/python", "-m", "pip", "install", "-q", wheel, cwd=folder)
    assert installed.returncode == 0, installed.stderr
    return folder / "venv/bin/dsv32-launch"


def test_lint_outside_any_checkout(launch: Path, tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(INVENTORY)
    done = run(launch, "lint", "site.yaml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "site.yaml").write_text(INVENTORY.replace("gpu2]", "gpu3]"))
    done = run(launch, "lint", "site.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "site.yaml:12" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_unit_is_printed_offline(launch: Path, tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(INVENTORY)
    done = run(launch, "plan", "site.yaml", "--offline", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "vllm serve" in done.stdout
    assert str(ROOT) not in done.stdout + done.stderr
