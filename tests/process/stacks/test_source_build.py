"""A package that no index has is built from its commit, offline, by the program that build hosts run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from built_stack import made_data, repository, with_tools

from launcher.flows import source_builds, stack, wheel_job
from launcher.flows.source_builds import build_lock, fetch_source, spec_of
from launcher.flows.stack import Fetching
from launcher.load.data import Data, shipped
from launcher.model.problem import LauncherError

BUILD_ENV = Path(__file__).parents[3] / "roles/python-env/files/build_env.py"
EXTENSION = """\
#include <Python.h>
static PyObject *answer(PyObject *self, PyObject *none) { return PyLong_FromLong(ANSWER); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, 0}, {0, 0, 0, 0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "fast", 0, -1, methods};
PyMODINIT_FUNC PyInit_fast(void) { return PyModule_Create(&module); }
"""
SETUP = """\
import os
from setuptools import Extension, setup
define = [("ANSWER", os.environ["ANSWER"])]
setup(name="fast", version="1.0", ext_modules=[Extension("fast", ["fast.c"], define_macros=define)])
"""


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A repository with a C extension."""
    return repository(tmp_path / "fast", {"fast.c": EXTENSION, "setup.py": SETUP})


def on_this_machine(fetching: Fetching, name: str, folder: Path) -> Path:
    """A Builder: what flows/source_builds.py has a host do."""
    work = folder.parent / "work"
    work.mkdir(exist_ok=True)
    fetch_source(name, fetching.stack.builds[name], stack.source_path(fetching.stack, name, folder))
    lock = build_lock(fetching, name)
    spec = {**spec_of(fetching, name, str(folder), lock), "python": sys.executable}
    for program in (Path(wheel_job.__file__), BUILD_ENV):
        shutil.copy(program, work)
    (work / "build.lock").write_text(lock)
    (work / "spec.json").write_text(json.dumps(spec))
    words = [sys.executable, str(work / "wheel_job.py"), str(work / "spec.json")]
    nowhere = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    subprocess.run(words, check=True, capture_output=True, env={**os.environ, **nowhere})
    return next((folder / "built").glob("fast-*.whl"))


def data_of(folder: Path, origin: Path, pins: str) -> Data:
    return Data((made_data(folder / "data", origin, pins), shipped()))


@pytest.mark.skipif(not shutil.which("gcc") or not shutil.which("git"), reason="no gcc or no git")
@pytest.mark.skipif(
    not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists(), reason="no headers of this Python"
)
def test_a_c_extension_is_built_once_pinned_and_then_taken(tmp_path: Path, origin: Path) -> None:
    shared = tmp_path / "shared"
    if not (pins := with_tools(shared / "stacks/x/wheels")):
        pytest.skip("no wheels of stack sandbox-cpu on this machine")
    data = data_of(tmp_path, origin, pins)
    wanted = stack.read("x", data)
    with pytest.raises(LauncherError) as nobody:
        stack.build(wanted, shared, lambda event: None, data=data)
    assert nobody.value.problems[0].what == "fast 1.0 is built from source, and its wheel is not there"
    with pytest.raises(LauncherError) as unpinned:
        stack.build(wanted, shared, lambda event: None, data=data, builder=on_this_machine)
    problem = unpinned.value.problems[0]
    assert problem.what.endswith("the lock has no pin of it")
    assert not (shared / "stacks/x/stack.json").exists()

    data = data_of(tmp_path, origin, f"{problem.do.partition('names: ')[2]}\n{pins}")
    wanted = stack.read("x", data)
    built = stack.build(wanted, shared, lambda event: None, data=data, builder=on_this_machine)
    assert built.wheels == 3
    assert stack.verify(wanted, shared, data) == ()
    with zipfile.ZipFile(next((built.folder / "wheels").glob("fast-1.0-*.whl"))) as wheel:
        wheel.extractall(tmp_path / "site")
    code = "import fast; print(fast.answer())"
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "site", capture_output=True, text=True)
    assert said.stdout == "42\n"
    # what is there is taken: nobody builds it again
    assert stack.build(wanted, shared, lambda event: None, data=data) == built


@pytest.mark.skipif(not shutil.which("git"), reason="no git")
def test_a_source_is_the_same_file_whoever_packs_it(tmp_path: Path, origin: Path) -> None:
    recipe = stack.read("x", data_of(tmp_path, origin, "")).builds["fast"]
    for name in ("a.tar", "b.tar"):
        fetch_source("fast", recipe, tmp_path / name)
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()
    (origin / ".git").rename(origin / "gone")
    with pytest.raises(LauncherError) as refused:
        source_builds.fetch_source("fast", recipe, tmp_path / "c.tar")
    assert not (tmp_path / "c.tar").exists()
    assert refused.value.problems[0].what.startswith("`git -C")
