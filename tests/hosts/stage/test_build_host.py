"""`stack build --on`: a package that no index has is built by a job on a real host, and then taken."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from built_stack import made_data, repository, with_tools
from stub_fleet import DATA, StubFleet

# no compiler on sandbox hosts, so what is built has none to call
SETUP = """\
import os
from setuptools import setup
with open("fast.py", "w") as file:
    file.write("ANSWER = " + os.environ["ANSWER"])
setup(name="fast", version="1.0", py_modules=["fast"])
"""
BUILD = ("stack", "build", "x", "--on", "h02", "--json", "-m", "a test", "--to")


@pytest.fixture
def pins(stubs: StubFleet) -> Iterator[str]:
    """Pins of what builds, in the stack's folder on the shared file system, which h02 may write to."""
    found = with_tools(stubs.sandbox.gpfs / "stacks/x/wheels")
    if not found:
        pytest.skip("no wheels of stack sandbox-cpu on this machine")
    assert stubs.host("h02").exec("mount", "-o", "remount,bind,rw", "/gpfs").returncode == 0
    yield found
    stubs.host("h02").exec("mount", "-o", "remount,bind,ro", "/gpfs")


def test_a_host_builds_what_no_index_has(stubs: StubFleet, tmp_path: Path, pins: str) -> None:
    origin = repository(tmp_path / "fast", {"setup.py": SETUP})
    data = Path(shutil.copytree(DATA, tmp_path / "data"))
    made_data(data, origin, pins, python="3.11")
    to = str(stubs.sandbox.gpfs)
    unpinned = stubs.run(*BUILD, to, data=data)
    assert unpinned.code != 0
    (problem,) = unpinned.problems
    assert problem["what"].startswith("fast 1.0 was built, its wheel is ")
    assert problem["what"].endswith("the lock has no pin of it")

    made_data(data, origin, f"{problem['do'].partition('names: ')[2]}\n{pins}", python="3.11")
    built = stubs.run(*BUILD, to, data=data)
    assert built.code == 0, built.stdout + built.stderr
    with zipfile.ZipFile(stubs.sandbox.gpfs / "stacks/x/wheels/fast-1.0-py3-none-any.whl") as wheel:
        assert wheel.read("fast.py") == b"ANSWER = 42"
    done = stubs.host("h02").exec("cat", "/var/log/dsv32/journal.jsonl").stdout
    assert '"op": "job"' in done
    assert "/var/lib/dsv32/jobs/wheel-" in done
    assert "wheel-" not in stubs.host("h02").exec("ls", "/var/lib/dsv32/jobs").stdout, "the wheel is taken"
    verified = stubs.run("stack", "verify", "x", "--json", "--at", to, data=data)
    assert verified.code == 0, verified.stdout
