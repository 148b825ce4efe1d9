"""Words, sizes, docstrings: what a reader meets first."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "launcher"
MODULES = sorted(PACKAGE.rglob("*.py"))
BANNED = re.compile(r"(^|_)(node|nodes|server|servers|box|boxes|replica|replicas|playbook|task|tasks)(_|$)")
# the field's own words that hold a banned one: vLLM's and HTTP's names, the syntax tree's nodes
ALLOWED = {"api_server", "http_server"}
LONG = {"remote/agent.py": 900}


def identifiers(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for found in ast.walk(tree):
        if isinstance(found, ast.Name):
            names.add(found.id)
        elif isinstance(found, ast.arg):
            names.add(found.arg)
        elif isinstance(found, (ast.FunctionDef, ast.ClassDef)):
            names.add(found.name)
        elif isinstance(found, ast.Attribute):
            pass
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_words_sizes_and_docstrings(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    here = path.relative_to(PACKAGE).as_posix()
    assert ast.get_docstring(tree), "a module says what it knows"
    assert len(text.splitlines()) <= LONG.get(here, 400), "a file is read in one sitting"
    if here not in ("load/document.py", "load/schema.py"):  # a YAML tree has nodes
        bad = {n for n in identifiers(tree) - ALLOWED if BANNED.search(n.lower())}
        assert not bad, f"words of ours for these: {bad}"
    for found in ast.walk(tree):
        if isinstance(found, (ast.FunctionDef, ast.ClassDef)) and not found.name.startswith("_"):
            public = found in tree.body
            assert not public or ast.get_docstring(found), f"{found.name} has no docstring"


def written() -> Iterator[Path]:
    """Every file of the checkout, but for what is made there."""
    yield from ROOT.glob("*")
    for name in ("configs", "docs", "inventories", "launcher", "roles", "scripts", "tests"):
        yield from (ROOT / name).rglob("*")


def test_a_checkout_has_no_packaged_data() -> None:
    assert not (PACKAGE / "_data").exists()


def test_no_unfinished_marks() -> None:
    mark = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
    for path in written():
        if path.suffix in (".py", ".yaml", ".j2", ".md", ".sh", ""):
            try:
                text = path.read_text()
            except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
                continue
            assert not mark.search(text), path


def test_each_test_module_has_a_name_of_its_own() -> None:
    """pytest imports them by their names alone, and stops at the second of a name."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(set(names)) == sorted(names)
