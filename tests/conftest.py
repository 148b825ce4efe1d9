"""What all tests share: comparing a text with a file that a person has read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

pytest_plugins = ["engine_hosts"]
# how long an example takes is a matter of what else the machine does
settings.register_profile("here", deadline=None)
settings.load_profile("here")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write golden files; read the diff before you commit"
    )


class ByFile(LoadFileScheduling):
    """Two workers: tests of a file stay on one, and so do all that share the real engines.

    So do all that share sandbox hosts: with another sandbox that boots beside it, a service of which no
    request may fail has too little of two processors now and then.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return next((layer for layer in ("engine", "fleet") if file.startswith(f"tests/{layer}/")), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Real engines first, beside what needs no host; then sandbox hosts."""

    def turn(item: pytest.Item) -> int:
        return 0 if item.get_closest_marker("engine") else 2 if item.get_closest_marker("fleet") else 1

    items.sort(key=turn)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Asserts that a text is what the file says, or with --update-golden writes it there."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert text == path.read_text()

    return compare
