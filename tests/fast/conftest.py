"""Tests of this folder start no process, connect to nothing and never sleep: one that does fails."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
REFUSED = {
    "os.exec": "started a program",
    "os.fork": "started a process",
    "os.forkpty": "started a process",
    "os.posix_spawn": "started a program",
    "os.system": "started a program",
    "subprocess.Popen": "started a program",
    "socket.connect": "connected to",
    "socket.sendto": "sent to",
}
"""Events of `sys.addaudithook` → what a test of this folder did."""

done: list[str] = []
running = False
real_sleep = time.sleep


class NotFast(AssertionError):
    """A test of this folder did what only those of the other folders may do."""


def refuse(what: str) -> None:
    """Raise, and note it for the end of the test, since what the test calls may catch what is raised."""
    done.append(what)
    raise NotFast(f"{what}: move this test to tests/process, or give it a stand-in")


def audit(event: str, arguments: tuple[Any, ...]) -> None:
    if running and event in REFUSED:
        refuse(f"{REFUSED[event]} {arguments[-1] if event.startswith('socket') else arguments[:2]}")


def sleep(seconds: float) -> None:
    if running:
        refuse(f"slept for {seconds} s")
    real_sleep(seconds)


sys.addaudithook(audit)
time.sleep = sleep


def pytest_collection_finish() -> None:
    # what thousands of tests share stays until the end; Python need not look through it each time
    gc.freeze()
    gc.set_threshold(100_000)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Fixtures of every scope are made within this, too. pytest asks for tests of other folders as well."""
    global running
    running = item.path.is_relative_to(HERE)
    try:
        return (yield)
    finally:
        running = False


@pytest.fixture(autouse=True)
def _nothing_but_code() -> Generator[None]:
    done.clear()
    yield
    assert not done, "a test of tests/fast " + ", ".join(done)
