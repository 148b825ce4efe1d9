"""stage_weights.py, run as on a host: whatever was there before, the folder ends as the manifest says."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "roles/weights/files/stage_weights.py"


class Place:
    """A model on the shared file system, and the folder that it is staged into."""

    def __init__(self, root: Path) -> None:
        self.source, self.folder = root / "shared", root / "local/model"
        self.manifest, self.progress = self.source / "manifest.json", root / "progress"
        self.source.mkdir()

    def write(self, files: dict[str, bytes]) -> None:
        entries = {}
        for name, content in files.items():
            (self.source / name).parent.mkdir(exist_ok=True)
            (self.source / name).write_bytes(content)
            entries[name] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        self.manifest.write_text(json.dumps({"files": entries}))

    def words(self) -> list[str]:
        return [sys.executable, str(PROGRAM), str(self.folder), str(self.source), str(self.manifest)]

    def stage(self) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "DSV32_PROGRESS": str(self.progress)}
        return subprocess.run(self.words(), capture_output=True, text=True, env=environment)

    def staged(self) -> dict[str, bytes]:
        found = (p for p in self.folder.rglob("*") if p.is_file() and p.name != ".complete")
        return {p.relative_to(self.folder).as_posix(): p.read_bytes() for p in found}

    def complete(self) -> bool:
        """What the launcher looks at: the marker names this manifest."""
        marker = self.folder / ".complete"
        digest = hashlib.sha256(self.manifest.read_bytes()).hexdigest()
        return marker.exists() and marker.read_text().strip() == digest


FILES = {"config.json": b"{}", "a.safetensors": b"a" * 9000, "encoding/b.txt": b"b" * 10, "empty": b""}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.write(FILES)
    return made


def test_first_run_copies_all_and_tells_how_far_it_is(place: Place) -> None:
    assert place.stage().returncode == 0
    assert place.staged() == FILES
    assert place.complete()
    told = json.loads(place.progress.read_text())
    assert told == {"text": "weights complete", "done": 9012, "total": 9012}


@pytest.mark.parametrize(
    "damage",
    [b"", b"a" * 8999, b"a" * 9001, b"a" * 4500 + b"?" + b"a" * 4499],
    ids=["empty", "truncated", "too long", "flipped"],
)
def test_only_the_broken_file_is_copied_again(place: Place, damage: bytes) -> None:
    place.stage()
    whole = (place.folder / "config.json").stat().st_ino
    (place.folder / "a.safetensors").write_bytes(damage)
    assert place.stage().returncode == 0
    assert place.staged() == FILES
    assert place.complete()
    assert (place.folder / "config.json").stat().st_ino == whole


def test_what_the_manifest_does_not_name_goes(place: Place) -> None:
    place.stage()
    (place.folder / "model-99999.safetensors").write_bytes(b"of an older revision")
    (place.folder / ".a.safetensors.part").write_bytes(b"of a killed run")
    assert place.stage().returncode == 0
    assert place.staged() == FILES


def test_a_new_revision_replaces_the_old_one(place: Place) -> None:
    place.stage()
    place.write({"config.json": b'{"new": 1}', "a.safetensors": FILES["a.safetensors"]})
    assert not place.complete()
    assert place.stage().returncode == 0
    assert place.complete()
    assert set(place.staged()) == {"config.json", "a.safetensors"}


def test_a_source_that_is_not_what_the_manifest_says_is_named(place: Place) -> None:
    (place.source / "a.safetensors").write_bytes(b"?" * 9000)
    (place.source / "encoding/b.txt").unlink()
    done = place.stage()
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert "a.safetensors has sha256" in first
    assert second == f"{place.source}/encoding/b.txt: No such file or directory"
    assert "Traceback" not in done.stderr
    assert not place.complete()
    assert set(place.staged()) == {"config.json", "empty"}


def test_no_complete_folder_while_it_is_wrong(place: Place) -> None:
    place.stage()
    (place.folder / "a.safetensors").write_bytes(b"broken")
    (place.source / "a.safetensors").unlink()
    assert place.stage().returncode == 1
    assert not place.complete()


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", ".hidden"])
def test_a_manifest_cannot_write_elsewhere(place: Place, name: str) -> None:
    place.manifest.write_text(json.dumps({"files": {name: {"size": 0, "sha256": "0" * 64}}}))
    done = place.stage()
    assert done.returncode == 1
    assert "is no name for a file inside the model's folder" in done.stderr


def test_too_little_room_is_said_before_the_first_byte(place: Place) -> None:
    huge = {"huge": {"size": 1 << 60, "sha256": "0" * 64}}
    place.manifest.write_text(json.dumps({"files": huge}))
    done = place.stage()
    assert done.returncode == 1
    assert "MiB are free: make room there" in done.stderr
    assert place.staged() == {}


def test_killed_and_run_again(place: Place) -> None:
    large = {f"shard-{i}": os.urandom(1 << 20) * 48 for i in range(8)}
    place.write(large)
    for kept in (1, 4):
        running = subprocess.Popen(place.words())
        while running.poll() is None and len(list(place.folder.glob("shard-*"))) < kept:
            time.sleep(0.001)
        running.send_signal(signal.SIGKILL)
        running.wait()
    before = {p.name: p.stat().st_ino for p in place.folder.glob("shard-*")}
    assert place.stage().returncode == 0
    assert place.staged() == large
    assert place.complete()
    after = {p.name: p.stat().st_ino for p in place.folder.glob("shard-*")}
    assert len(before) >= 4
    assert before.items() <= after.items(), "a file that was whole stays the same file"
