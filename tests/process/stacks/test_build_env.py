"""build_env.py, run as on a host, with an installer of a few lines in the uv wheel's place."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / "roles/python-env/files/build_env.py"
# Does what uv does with the same words, as far as this program can see; `hang` and `fail` are a test's.
INSTALLER = """\
import pathlib, sys, time
words = sys.argv[1:]
if words[0] == "venv":
    assert words[1:4] == ["--relocatable", "--python", sys.executable]
    (pathlib.Path(words[4]) / "bin").mkdir(parents=True)
    sys.exit(0)
assert words[:2] == ["pip", "install"] and "--require-hashes" in words and "--no-index" in words
root = pathlib.Path(words[words.index("--python") + 1]).parents[1]
wheels = pathlib.Path(words[words.index("--find-links") + 1])
(root / "lib/python3.11/site-packages/one-1.dist-info").mkdir(parents=True)
while (wheels / "hang").exists():
    time.sleep(0.01)
if (wheels / "fail").exists():
    sys.exit("no such wheel: two==2")
(root / "lib/python3.11/site-packages/two-2.dist-info").mkdir(parents=True)
"""


class Place:
    """A built stack, and the path that the environment gets."""

    def __init__(self, root: Path) -> None:
        self.wheels, self.lock = root / "wheels", root / "requirements.lock"
        self.path, self.progress = root / "local/environment", root / "progress"
        self.wheels.mkdir()
        wheel = self.wheels / "uv-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("uv-1.0.data/scripts/uv", f"#!{sys.executable}\n{INSTALLER}")
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        pins = (("one", 1, "1" * 64), ("two", 2, "2" * 64), ("uv", 1.0, digest))
        self.lock.write_text(
            "# a lock\n" + "".join(f"{name}=={v} \\\n    --hash=sha256:{h}\n" for name, v, h in pins)
        )

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.lock.read_bytes()).hexdigest()

    def words(self, digest: str = "") -> list[str]:
        given = (self.path, sys.executable, self.lock, self.wheels, digest or self.digest)
        return [sys.executable, str(PROGRAM), *(str(g) for g in given)]

    def environment(self) -> dict[str, str]:
        return {**os.environ, "DSV32_PROGRESS": str(self.progress)}

    def build(self, digest: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.words(digest), capture_output=True, text=True, env=self.environment())

    def beside(self) -> list[str]:
        return sorted(p.name for p in self.path.parent.iterdir())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_it_is_there_as_a_whole_with_its_lock_in_the_marker(place: Place) -> None:
    done = place.build()
    assert done.returncode == 0, done.stderr
    assert (place.path / ".complete").read_text().strip() == place.digest
    assert (place.path / "lib/python3.11/site-packages/two-2.dist-info").is_dir()
    assert place.beside() == ["environment"]
    assert json.loads(place.progress.read_text()) == {"text": "environment complete", "done": 3, "total": 3}


def test_another_lock_than_wanted_is_refused_before_anything_is_made(place: Place) -> None:
    done = place.build("f" * 64)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("wanted is ffffffffffff: run `dsv32-launch stack build`")
    assert not place.path.parent.exists()


def test_an_installer_that_the_lock_does_not_name_is_not_run(place: Place) -> None:
    with next(place.wheels.glob("uv-*")).open("ab") as wheel:
        wheel.write(b"?")
    done = place.build()
    assert done.returncode == 1
    assert "no uv wheel that the lock names" in done.stderr
    assert not place.path.exists()


def test_a_failed_install_leaves_no_environment_and_says_why(place: Place) -> None:
    (place.wheels / "fail").touch()
    done = place.build()
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "no such wheel: two==2",
        "`uv pip` ended with 1: see the lines above",
    ]
    assert not place.path.exists()


def test_killed_half_way_and_run_again(place: Place) -> None:
    (place.wheels / "hang").touch()
    running = subprocess.Popen(place.words(), env=place.environment(), start_new_session=True)
    partial = place.path.with_name("environment.partial")
    while not list(partial.glob("lib/python3.11/site-packages/*")):
        assert running.poll() is None
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert not place.path.exists()
    (place.wheels / "hang").unlink()
    assert place.build().returncode == 0
    assert (place.path / ".complete").read_text().strip() == place.digest
    assert place.beside() == ["environment"]


def test_an_incomplete_environment_under_the_same_name_is_replaced(place: Place) -> None:
    (place.path / "lib").mkdir(parents=True)
    (place.path / "leftover").touch()
    assert place.build().returncode == 0
    assert not (place.path / "leftover").exists()
