"""Inventories with one fault each: exactly one Problem, to the letter, and never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from launcher.load import Data, load_from
from launcher.model.problem import InputError, Problem
from launcher.resolve import resolve

INPUT = Path(__file__).with_name("input")
BROKEN = sorted((INPUT / "broken").glob("*.yaml"))


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Messages name files as the user did; no ssh_config of the machine that runs the tests plays in."""
    monkeypatch.chdir(INPUT / "broken")
    monkeypatch.setenv("HOME", str(tmp_path))


def problems_of(path: Path) -> tuple[Problem, ...]:
    try:
        resolve(load_from(Data([INPUT / "data"]), path))
    except InputError as error:
        return error.problems
    return ()


def text_of(problem: Problem) -> str:
    parts = (("where", problem.where), ("why", problem.why), ("do", problem.do), ("more", problem.more))
    return "\n".join([problem.what, *(f"  {word:<5} {text}" for word, text in parts if text)]) + "\n"


def test_the_inventory_they_were_broken_from_is_good() -> None:
    assert problems_of(INPUT / "good.yaml") == ()


def test_there_are_enough() -> None:
    assert len(BROKEN) >= 40


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_one_fault_one_message(path: Path, golden: Callable[[Path, str], None]) -> None:
    found = problems_of(Path(path.name))
    golden(path.with_suffix(".txt"), "".join(map(text_of, found)))
    assert len(found) == 1


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_the_message_names_a_line_and_a_way_out(path: Path) -> None:
    (found,) = problems_of(Path(path.name))
    assert found.do
    assert found.where.rpartition(":")[2].isdigit() or path.stem == "empty"
