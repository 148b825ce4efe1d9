"""What engines compiled: a host begins with what another put on the shared file system, or with nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from samples import sample

from launcher.resolve import resolve


@pytest.fixture
def words(tmp_path: Path) -> tuple[str, ...]:
    """The command of `engine/warmed`, its two folders below `tmp_path`."""
    wanted = resolve(sample("sandbox", tmp_path))
    (want,) = {step.want for steps in wanted.steps.values() for step in steps if step.id == "engine/warmed"}
    *command, shared, local = want.run
    assert want.unless.path == f"{local}/.warmed"
    assert Path(shared).name == Path(local).name  # one folder for each environment, here and there
    (tmp_path / "local").mkdir()
    return (*command, str(tmp_path / "shared"), str(tmp_path / "local"))


def test_what_another_host_compiled_is_there_before_the_first_start(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "shared/.cache").mkdir(parents=True)
    (tmp_path / "shared/.cache/kernel.cubin").write_text("compiled")
    subprocess.run(words, check=True)
    assert (tmp_path / "local/.cache/kernel.cubin").read_text() == "compiled"
    assert (tmp_path / "local/.warmed").exists()


def test_without_such_a_folder_a_host_compiles_for_itself(words: tuple[str, ...], tmp_path: Path) -> None:
    subprocess.run(words, check=True)
    assert [path.name for path in (tmp_path / "local").iterdir()] == [".warmed"]
