"""An `up` that is killed at any moment and run again ends where an undisturbed one ends."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

from stub_fleet import DATA, StubFleet
from witness import leftovers

KILLS = 10


def killed(stubs: StubFleet, *, after_s: float, data: Path = DATA) -> str:
    """An `up` that gets SIGKILL, unless it has ended before; the stage that it had come to."""
    runs = len(stubs.runs)
    begun = stubs.start("up", "--yes", data=data)
    time.sleep(after_s)
    begun.process.kill()
    begun.ended()
    stages = stubs.events("stage-started") if len(stubs.runs) > runs else ()
    return stages[-1]["subject"] if stages else ""


def moments(lasts_s: float, *, seed: int) -> list[float]:
    """One at random in each tenth of a run."""
    chance = random.Random(seed)
    return [lasts_s * (tenth + chance.random()) / KILLS for tenth in range(KILLS)]


def timed_up(stubs: StubFleet, data: Path = DATA) -> float:
    start_s = time.monotonic()
    done = stubs.up(data=data)
    assert done.code == 0, done.stdout + done.stderr
    return time.monotonic() - start_s


def test_on_bare_hosts(stubs: StubFleet) -> None:
    stubs.bare()
    lasts_s = timed_up(stubs)
    straight = stubs.state()
    reached = set()
    for moment_s in moments(lasts_s, seed=1):
        stubs.bare()
        reached.add(killed(stubs, after_s=moment_s))
        timed_up(stubs)
        assert stubs.state() == straight, f"killed after {moment_s:.2f} s of {lasts_s:.2f}"
        assert not "".join(leftovers(h) for h in stubs.hosts), f"killed after {moment_s:.2f} s"
    assert len(reached) >= 3, "kills fell into different stages"


def test_on_the_way_to_another_release(stubs: StubFleet, tmp_path: Path) -> None:
    """Two deployments in turn, which differ in a program and in every unit."""
    other = tmp_path / "other"
    shutil.copytree(DATA, other)
    for name, old, new in (
        ("roles/python-env/files/stub.py", "if __name__", "# another release\nif __name__"),
        ("configs/layouts/stub-1p1d.yaml", "max-num-seqs: 16", "max-num-seqs: 17"),
        ("configs/layouts/stub-1p1d.yaml", "router: {}", "router: {front_port: 8081, port: 30001}"),
    ):
        text = (other / name).read_text()
        assert old in text
        (other / name).write_text(text.replace(old, new))
    timed_up(stubs)
    straight, lasts_s = {}, 0.0
    for data in (other, DATA):
        lasts_s = timed_up(stubs, data)
        straight[data] = stubs.state()
    assert straight[other] != straight[DATA]
    for number, moment_s in enumerate(moments(lasts_s, seed=2)):
        data = DATA if number % 2 else other
        killed(stubs, after_s=moment_s, data=data)
        timed_up(stubs, data)
        assert stubs.state() == straight[data], f"killed after {moment_s:.2f} s of {lasts_s:.2f}"
        assert not "".join(leftovers(h) for h in stubs.hosts), f"killed after {moment_s:.2f} s"
