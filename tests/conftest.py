"""What all tests share: comparing a text with a file that a person has read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest_plugins = ["engine_hosts"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write golden files; read the diff before you commit"
    )


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups afterwards
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Two workers: what needs real engines, which share hosts, stays on one and begins; hosts' tests go last.

    Each file is a group otherwise: real engines then run beside tests that wait for nothing, and two
    sandboxes, which wait most of their time, beside each other.
    """
    for item in items:
        group = "engine" if item.get_closest_marker("engine") else item.path.name
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(
        key=lambda item: (not item.get_closest_marker("engine"), bool(item.get_closest_marker("fleet")))
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Asserts that a text is what the file says, or with --update-golden writes it there."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert text == path.read_text()

    return compare
