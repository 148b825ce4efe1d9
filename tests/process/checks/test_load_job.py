"""What runs on hosts for `check --load`, with real processes: legs one by one, each bounded; files read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from launcher.flows import load_job
from launcher.load.data import shipped

READER = shipped() / "configs/checks-load/files/read_files.py"


def legs(folder: Path, *words: list[str], within_s: float = 20, again: bool = False) -> list[dict[str, Any]]:
    spec = {"within_s": within_s, "legs": [{"name": "leg", "words": w, "again": again} for w in words]}
    (folder / "spec.json").write_text(json.dumps(spec))
    assert load_job.main(str(folder)) == 0
    told: list[dict[str, Any]] = json.loads((folder / "told.json").read_text())
    return told


def test_each_leg_tells_how_it_ended_whatever_became_of_the_others(tmp_path: Path) -> None:
    told = legs(tmp_path, ["/no/program"], ["sh", "-c", "echo out; echo err >&2; exit 3"], ["echo", "well"])
    assert [leg["exit"] for leg in told] == [127, 3, 0]
    assert [leg["text"] for leg in told][1:] == ["out\nerr\n", "well\n"]


def test_one_that_does_not_end_is_stopped_with_its_children(tmp_path: Path) -> None:
    # the leg ends whatever a child in another session does, which goes with the job's unit
    script = f"setsid sleep 300 & echo $! >{tmp_path}/other; sleep 300 & echo $! >{tmp_path}/child"
    (told,) = legs(tmp_path, ["sh", "-c", f"{script}; echo begun; wait"], within_s=1)
    child, other = (int((tmp_path / name).read_text()) for name in ("child", "other"))
    os.kill(other, signal.SIGKILL)  # it is still there
    assert (told["exit"], told["text"]) == (None, "begun\n")
    until_s = time.monotonic() + 10  # a kill is sent, and done when that process has its turn
    while state(child) not in ("", "Z"):
        assert time.monotonic() < until_s
        time.sleep(0.01)


def state(pid: int) -> str:
    """Of a process; empty: it is gone."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.read_text().rpartition(")")[2].split()[0] if stat.exists() else ""


def test_who_turns_to_a_listener_tries_until_it_is_heard(tmp_path: Path) -> None:
    script = f"test -e {tmp_path}/second || {{ touch {tmp_path}/second; echo refused; exit 1; }}; echo heard"
    (told,) = legs(tmp_path, ["sh", "-c", script], again=True)
    assert (told["exit"], told["text"]) == (0, "heard\n")
    (told,) = legs(tmp_path, ["sh", "-c", "echo refused; exit 1"], again=True, within_s=1)
    assert (told["exit"], told["text"]) == (1, "refused\n")


def test_files_are_read_whole_and_once(tmp_path: Path) -> None:
    for name, size in (
        ("a.safetensors", 40 << 20),
        ("b.safetensors", (16 << 20) + 5000),
        ("config.json", 10),
    ):
        (tmp_path / name).write_bytes(b"x" * size)
    done = subprocess.run([sys.executable, READER, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"read {(56 << 20) + 5000} bytes of 2 files, ")
    empty = subprocess.run(
        [sys.executable, READER, tmp_path / "no"], capture_output=True, text=True, check=False
    )
    assert (empty.returncode, empty.stdout) == (1, f"{tmp_path}/no: no file to read\n")
