"""read_weights.py, run as on a host: files that stay in place are compared by size and read, or why not."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from launcher.flows.weights import write_manifest

PROGRAM = Path(__file__).parents[3] / "roles/weights/files/read_weights.py"
MIB = 1 << 20
FILES = {"config.json": b"{}", "a.bin": b"a" * 3 * MIB, "empty": b""}
ROOMLESS = """
import sys
sys.path.insert(0, sys.argv[1])
import read_weights
read_weights.available = lambda: 2 << 20
sys.exit(read_weights.main(sys.argv[2:]))
"""


class Place:
    """A model on the shared file system, and what a host notes of it."""

    def __init__(self, root: Path) -> None:
        self.folder, self.record, self.progress = root / "shared", root / "lib/record", root / "progress"
        self.manifest = self.folder / "manifest.json"
        self.folder.mkdir()
        for name, content in FILES.items():
            (self.folder / name).write_bytes(content)
        write_manifest(self.folder, lambda _: None, block_bytes=MIB)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "DSV32_PROGRESS": str(self.progress)}
        return subprocess.run([sys.executable, *words], capture_output=True, text=True, env=environment)

    def read(self) -> subprocess.CompletedProcess[str]:
        return self.run(str(PROGRAM), str(self.folder), str(self.manifest), str(self.record))

    def verify(self) -> subprocess.CompletedProcess[str]:
        return self.run(str(PROGRAM), "--verify", str(self.folder), str(self.manifest))

    def told(self) -> dict[str, object]:
        return dict(json.loads(self.progress.read_text()))

    def noted(self) -> bool:
        digest = hashlib.sha256(self.manifest.read_bytes()).hexdigest()
        return self.record.exists() and self.record.read_text().strip() == digest


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_all_is_read_and_noted_and_nothing_is_written_beside_it(place: Place) -> None:
    before = sorted(place.folder.parent.rglob("*"))
    done = place.read()
    assert done.returncode == 0, done.stderr
    assert place.noted()
    assert (place.told()["text"], place.told()["done"]) == ("bytes read ahead", 3 * MIB + 2)
    made = {p.relative_to(place.folder.parent).as_posix() for p in place.folder.parent.rglob("*")}
    assert made - {p.relative_to(place.folder.parent).as_posix() for p in before} == {
        "lib",
        "lib/record",
        "progress",
    }


@pytest.mark.parametrize("size", [MIB, 4 * MIB, None])
def test_a_file_of_another_size_is_named_and_nothing_is_noted(place: Place, size: int | None) -> None:
    if size is None:
        (place.folder / "a.bin").unlink()
    else:
        os.truncate(place.folder / "a.bin", size)
    done = place.read()
    assert done.returncode == 1
    assert f"a.bin: {size or 0} of {3 * MIB} bytes" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("a.bin: of another size: bring that to the shared")
    assert not place.noted()


def test_what_memory_cannot_hold_is_not_read(place: Place) -> None:
    words = ("-c", ROOMLESS, str(PROGRAM.parent), str(place.folder), str(place.manifest), str(place.record))
    done = place.run(*words)
    assert done.returncode == 0, done.stderr
    assert place.noted()
    assert place.told()["text"] == "not read ahead: 3 MiB of weights, 2 MiB of memory are available"


def test_wrong_bytes_are_found_by_reading_all(place: Place) -> None:
    assert place.verify().returncode == 0
    (place.folder / "a.bin").write_bytes(b"a" * 2 * MIB + b"b" * MIB)
    done = place.verify()
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("a.bin: wrong bytes: bring that to the shared")
    assert place.told()["wrong"] == {"a.bin": 1}
