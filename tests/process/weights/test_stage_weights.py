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

from launcher.flows.weights import write_manifest

PROGRAM = Path(__file__).parents[3] / "roles/weights/files/stage_weights.py"
BLOCK = 4096


class Place:
    """A model on the shared file system, and the folder that it is staged into."""

    def __init__(self, root: Path) -> None:
        self.source, self.folder = root / "shared", root / "local/model"
        self.manifest, self.progress = self.source / "manifest.json", root / "progress"
        self.source.mkdir()

    def write(self, files: dict[str, bytes]) -> None:
        for name, content in files.items():
            (self.source / name).parent.mkdir(exist_ok=True)
            (self.source / name).write_bytes(content)
        write_manifest(self.source, lambda _: None, block_bytes=BLOCK)

    def words(self) -> list[str]:
        return [sys.executable, str(PROGRAM), str(self.folder), str(self.source), str(self.manifest)]

    def stage(self) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "DSV32_PROGRESS": str(self.progress)}
        return subprocess.run(self.words(), capture_output=True, text=True, env=environment)

    def verify(self) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, str(PROGRAM), "--verify", *self.words()[2:]]
        return subprocess.run(words, capture_output=True, text=True)

    def read(self) -> int:
        """Bytes that the last run read from the shared file system."""
        return int(json.loads(self.progress.read_text())["read"])

    def revision(self) -> Path:
        """Where the files of the wanted revision are, published or not."""
        return self.folder.with_name(".model") / hashlib.sha256(self.manifest.read_bytes()).hexdigest()[:12]

    def staged(self) -> dict[str, bytes]:
        found = (p for p in self.folder.rglob("*") if p.is_file() and not p.name.startswith("."))
        return {p.relative_to(self.folder).as_posix(): p.read_bytes() for p in found}

    def complete(self) -> bool:
        """What the launcher looks at: the marker names this manifest."""
        marker = self.folder / ".complete"
        digest = hashlib.sha256(self.manifest.read_bytes()).hexdigest()
        return marker.exists() and marker.read_text().strip() == digest


FILES = {"config.json": b"{}", "a.bin": b"a" * 9000, "encoding/b.txt": b"b" * 10, "empty": b""}


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
    assert told == {
        "text": "weights complete",
        "done": 9012,
        "total": 9012,
        "per_s": 0,
        "left_s": None,
        "read": 9012,
        "fetched": 0,
        "sent": 0,
    }
    assert place.stage().returncode == 0
    assert place.read() == 0


DAMAGES = {
    "empty": (b"", 9000),
    "truncated": (b"a" * 8999, 9000 - 2 * BLOCK),
    "truncated at a block": (b"a" * BLOCK, 9000 - BLOCK),
    "too long": (b"a" * 9001, 0),
    "flipped": (b"a" * 4500 + b"?" + b"a" * 4499, BLOCK),
}


@pytest.mark.parametrize(("damage", "again"), DAMAGES.values(), ids=DAMAGES)
def test_only_the_broken_blocks_are_copied_again(place: Place, damage: bytes, again: int) -> None:
    place.stage()
    (place.folder / "a.bin").write_bytes(damage)
    found = place.verify()
    assert found.returncode == 1
    assert f"{place.revision()}/a.bin" in found.stderr
    assert not place.complete()
    assert place.stage().returncode == 0
    assert place.staged() == FILES
    assert place.complete()
    assert place.read() == again
    assert place.verify().returncode == 0


def test_a_file_of_another_size_is_mended_without_a_verification(place: Place) -> None:
    place.stage()
    (place.folder / "a.bin").write_bytes(b"a" * 8000)
    assert place.stage().returncode == 0
    assert place.staged() == FILES
    assert place.read() == 9000 - BLOCK


def test_what_the_manifest_does_not_name_goes(place: Place) -> None:
    place.stage()
    (place.folder / "model-99999.bin").write_bytes(b"of an older revision")
    assert place.stage().returncode == 0
    assert place.staged() == FILES


def test_what_was_copied_by_hand_is_kept_as_far_as_it_is_right(place: Place) -> None:
    place.folder.mkdir(parents=True)
    (place.folder / "a.bin").write_bytes(b"a" * BLOCK + b"?" * (9000 - BLOCK))
    (place.folder / "config.json").write_bytes(b"{}")
    assert place.stage().returncode == 0
    assert place.staged() == FILES
    assert place.read() == 9000 - BLOCK + 10


def test_a_new_revision_takes_the_place_of_the_old_one_which_stays(place: Place) -> None:
    place.stage()
    old = place.folder.resolve()
    place.write({"config.json": b'{"new": 1}'})
    assert not place.complete()
    assert place.stage().returncode == 0
    assert place.complete()
    assert place.staged() == {**FILES, "config.json": b'{"new": 1}'}
    assert (old / "config.json").read_bytes() == b"{}"
    assert place.read() == 10, "what is the same in both is read once"
    assert (old / "a.bin").samefile(place.folder / "a.bin")


def test_old_revisions_go_but_never_one_in_use(place: Place) -> None:
    revisions = []
    opened = None
    for number in range(4):
        place.write({"config.json": json.dumps({"number": number}).encode()})
        assert place.stage().returncode == 0
        revisions.append(place.folder.resolve())
        opened = opened or (revisions[0] / "config.json").open()
    assert [path.exists() for path in revisions] == [True, False, True, True]
    assert opened
    opened.close()
    place.write({"config.json": b'{"number": 4}'})
    place.stage()
    assert [path.exists() for path in revisions] == [False, False, False, True]


def test_a_source_that_is_not_what_the_manifest_says_is_named(place: Place) -> None:
    (place.source / "a.bin").write_bytes(b"a" * 5000 + b"?" * 4000)
    done = place.stage()
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert first.startswith(f"{place.source}/a.bin: 4096 bytes from 4096 on are not what the manifest says")
    assert second.startswith(f"{place.source}/a.bin: 808 bytes from 8192 on")
    assert not place.folder.exists(), "nothing is published"
    (place.source / "a.bin").write_bytes(FILES["a.bin"])
    assert place.stage().returncode == 0
    assert place.read() == 4096 + 808


def test_a_file_that_the_shared_file_system_has_no_more_is_named(place: Place) -> None:
    (place.source / "encoding/b.txt").unlink()
    done = place.stage()
    assert done.returncode == 1
    assert done.stderr == f"{place.source}/encoding/b.txt: No such file or directory\n"
    assert not place.folder.exists()


def test_a_manifest_without_blocks_or_with_others_is_refused(place: Place) -> None:
    (place.source / "manifest.blocks.json").write_text("{}")
    assert "names other blocks" in place.stage().stderr
    place.manifest.write_text('{"files": {}}')
    assert "knows no blocks" in place.stage().stderr


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", ".hidden"])
def test_a_manifest_cannot_write_elsewhere(place: Place, name: str) -> None:
    told = json.loads(place.manifest.read_text())
    place.manifest.write_text(json.dumps({**told, "files": {name: {"size": 0, "sha256": "0" * 64}}}))
    done = place.stage()
    assert done.returncode == 1
    assert "is no name for a file inside the model's folder" in done.stderr


def test_too_little_room_is_said_before_the_first_byte(place: Place) -> None:
    told = json.loads(place.manifest.read_text())
    told["files"]["config.json"]["size"] = 1 << 60
    place.manifest.write_text(json.dumps(told))
    done = place.stage()
    assert done.returncode == 1
    assert "MiB are free: make room there" in done.stderr
    assert not place.folder.exists()


def test_killed_and_run_again(place: Place) -> None:
    large = {f"shard-{i}": os.urandom(1 << 20) * 2 for i in range(8)}
    place.write(large)
    blocks = sum(-(-len(content) // BLOCK) for content in (*FILES.values(), *large.values()))
    running = subprocess.Popen(place.words())
    journal = place.revision() / ".blocks"
    while running.poll() is None and not (journal.exists() and journal.stat().st_size > 500):
        time.sleep(0.001)
    running.send_signal(signal.SIGKILL)
    running.wait()
    saved = journal.read_text().count("\n") - 1
    with journal.open("a") as torn:
        torn.write("1")  # of a line that a power loss has cut
    assert not place.folder.exists()
    assert place.stage().returncode == 0
    assert place.staged() == {**FILES, **large}
    assert place.complete()
    assert place.read() <= (blocks - saved) * BLOCK, "what the journal has is kept"
