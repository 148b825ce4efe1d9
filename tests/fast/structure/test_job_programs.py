"""Programs of jobs tell how far they are in one way, each by itself: what runs on a host is one file."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PROGRAMS = [
    "launcher/bench/client.py",
    "launcher/flows/load_job.py",
    "roles/python-env/files/build_env.py",
    "roles/weights/files/stage_weights.py",
]


def say_of(program: str) -> ast.FunctionDef:
    tree = ast.parse((ROOT / program).read_text())
    return next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "say")


def test_nobody_else_writes_progress() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("launcher", "roles", "configs")
        for path in (ROOT / folder).rglob("*.py")
        if 'environ.get("DSV32_PROGRESS")' in path.read_text()
    }
    assert sorted(found) == PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS)
def test_all_say_it_in_the_same_way(program: str) -> None:
    def parts(say: ast.FunctionDef) -> list[str]:
        return [arg.arg for arg in say.args.args] + [ast.dump(line) for line in say.body]

    assert parts(say_of(program)) == parts(say_of(PROGRAMS[0]))


def test_it_is_written_whole_and_only_where_somebody_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: dict[str, Any] = {"os": os, "json": json, "Any": Any}
    exec(compile(ast.Module([say_of(PROGRAMS[0])], []), "say", "exec"), names)
    monkeypatch.delenv("DSV32_PROGRESS", raising=False)
    names["say"]("nobody hears")
    monkeypatch.setenv("DSV32_PROGRESS", str(tmp_path / "progress"))
    names["say"]("bytes staged", 3, 7, left_s=None)
    assert json.loads((tmp_path / "progress").read_text()) == {
        "text": "bytes staged",
        "done": 3,
        "total": 7,
        "left_s": None,
    }
    assert [path.name for path in tmp_path.iterdir()] == ["progress"]
