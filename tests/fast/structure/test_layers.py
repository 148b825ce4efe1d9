"""Imports point down, and each dependency has one door."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "launcher"
MODULES = sorted(PACKAGE.rglob("*.py"))

# layer -> layers it may import beside itself
MAY_IMPORT = {
    "model": set(),
    "load": {"model"},
    "steps": {"model"},
    "resolve": {"model", "steps", "load.schema"},
    "fit": {"model"},
    "predict": {"model", "fit"},
    "lint": {"model", "fit"},
    "checks": {"model", "resolve"},
    "explain": {"model", "steps", "resolve", "lint"},
    "bench": {"model"},
    "compare": {"model", "resolve", "lint", "explain"},
    "record": {"model"},
    "wait.py": set(),
    "remote": {"model", "wait"},
    "execute": {"model", "steps", "resolve", "remote", "record", "wait"},
    "health": {"model", "remote", "record", "wait"},
    "rollout": {"model", "steps", "resolve", "remote", "execute", "health", "wait"},
    "sandbox": {"model"},
    "flows": {"model", "load", "steps", "resolve", "remote", "execute", "health", "record", "sandbox", "wait"}
    | {"rollout", "fit", "predict", "lint", "explain", "checks", "compare", "bench"},
    "cli": {"model", "load", "steps", "resolve", "remote", "execute", "health", "record", "sandbox", "wait"}
    | {"flows", "rollout", "fit", "predict", "lint", "explain", "checks", "compare", "bench"},
}
# dependency -> path prefixes, below launcher/, that may import it
DOORS = {
    "fabric": ("remote/route.py",),
    "paramiko": ("remote/ssh.py", "remote/login.py", "remote/route.py"),
    "yaml": ("load/document.py",),
    "pydantic": ("load/schema.py",),
    "jinja2": ("resolve/templates.py",),
    "tenacity": ("wait.py",),
    "rich": ("cli/view.py", "cli/watch.py"),
    "typer": ("cli/",),
    "prometheus_client": ("health/metrics.py",),
    "subprocess": (
        "remote/agent.py",
        "bench/client.py",
        "load/secrets.py",
        "sandbox/",
        "flows/pinning.py",
        "flows/source_builds.py",
        "flows/load_job.py",
        "flows/wheel_job.py",
        "flows/wheelhouse.py",
        "flows/mirror.py",
    ),
}


def imports(path: Path) -> Iterator[str]:
    """Dotted names that a module imports, wherever in it they stand."""
    for found in ast.walk(ast.parse(path.read_text())):
        if isinstance(found, ast.Import):
            yield from (alias.name for alias in found.names)
        elif isinstance(found, ast.ImportFrom) and found.module:
            yield found.module
            yield from (f"{found.module}.{alias.name}" for alias in found.names)


def layer(dotted: str) -> str:
    return dotted.split(".")[1] if dotted.count(".") else ""


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down(path: Path) -> None:
    own = path.relative_to(PACKAGE).parts[0]
    if own == "__init__.py":
        return
    for name in imports(path):
        if not name.startswith("launcher.") or layer(name) in (own, "__version__"):
            continue
        allowed = MAY_IMPORT[own]
        inside = name.removeprefix("launcher.")
        ok = layer(name) in allowed or any(
            inside == a or inside.startswith(a + ".") for a in allowed if "." in a
        )
        assert ok, f"{own} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_one_door_per_dependency(path: Path) -> None:
    here = path.relative_to(PACKAGE).as_posix()
    for name in imports(path):
        doors = DOORS.get(name.split(".")[0])
        assert doors is None or any(here.startswith(d) for d in doors), f"{name} has its door in {doors}"


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


FILES = {name_of(path): path for path in MODULES}
LAZY = ("launcher.cli", "launcher.remote.agent")
"""Whose functions may import what imports their module: commands run commands; agents send their text."""


def needs(path: Path) -> set[str]:
    """Modules of ours that a file imports, wherever in it; in LAZY only what it imports when it is loaded."""
    tree = ast.parse(path.read_text())
    if name_of(path).startswith(LAZY):
        tree.body = [part for part in tree.body if isinstance(part, ast.Import | ast.ImportFrom)]
    found: set[str] = set()
    for part in ast.walk(tree):
        if isinstance(part, ast.Import):
            found.update(alias.name for alias in part.names)
        elif isinstance(part, ast.ImportFrom) and part.module:
            names = [f"{part.module}.{alias.name}" for alias in part.names]
            found.update(name if name in FILES else part.module for name in names)
    return found & FILES.keys() - {name_of(path)}


def test_no_file_imports_itself_by_way_of_others() -> None:
    TopologicalSorter({name: needs(path) for name, path in FILES.items()}).prepare()


def test_model_needs_nothing_installed() -> None:
    third = {n.split(".")[0] for p in (PACKAGE / "model").glob("*.py") for n in imports(p)}
    assert third <= {
        "launcher",
        "__future__",
        "collections",
        "dataclasses",
        "enum",
        "hashlib",
        "json",
        "typing",
        "annotated_types",
    }


@pytest.mark.parametrize(
    "name",
    ["remote/agent", "remote/agent_looks", "remote/agent_ops", "bench/client", "flows/load_job"],
)
def test_what_runs_on_hosts_is_standard_library_and_old_python(name: str) -> None:
    path = PACKAGE / f"{name}.py"
    ast.parse(path.read_text(), feature_version=(3, 8))
    outside = {n for n in imports(path) if n.split(".")[0] not in sys.stdlib_module_names}
    assert all(n.startswith("launcher.remote.agent") for n in outside)


@pytest.mark.parametrize(
    "name", ["resolve", "steps", "fit", "predict", "lint", "explain", "checks", "compare", "bench"]
)
def test_pure_layers_know_no_clock_random_or_environment(name: str) -> None:
    banned = {"time", "random", "datetime", "socket", "subprocess", "secrets", "uuid"}
    for path in set((PACKAGE / name).glob("*.py")) - {PACKAGE / "bench/client.py"}:  # which runs on hosts
        found = {n.split(".")[0] for n in imports(path)} & banned
        assert not found, f"{path.name} imports {found}"
        assert "os.environ" not in path.read_text(), f"{path.name} reads the environment"
