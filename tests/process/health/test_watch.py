"""The watch over routers and fronts: what it takes for a hang."""

from __future__ import annotations

import ast
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

WATCH = Path(__file__).parents[3] / "roles/watch/files/watch.py"


@pytest.fixture
def watch() -> Any:
    module = ModuleType("watch")
    exec(compile(WATCH.read_text(), str(WATCH), "exec"), vars(module))
    vars(module)["ANSWER_WITHIN_S"] = 0.2
    return module


class Unwilling(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(503)

    def log_message(self, *words: object) -> None:
        pass


def test_any_answer_is_a_sign_of_life_and_a_refusal_is_no_hang(watch: Any) -> None:
    with socket.socket() as stuck:
        stuck.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{stuck.getsockname()[1]}/readiness"
        assert watch.ask(url) == watch.REFUSES
        stuck.listen()
        assert watch.ask(url) == watch.HANGS, "the kernel takes the connection"
    with HTTPServer(("127.0.0.1", 0), Unwilling) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        assert watch.ask(f"http://127.0.0.1:{server.server_port}/readiness") == watch.ANSWERS


@pytest.mark.parametrize(
    ("told", "misses"),
    [
        ("h1 h1 h1", 0),  # it has not answered yet: it starts
        ("a1 h1 h1", 2),
        ("a1 h1 a1 h1", 1),
        ("a1 h1 r1 h1", 1),  # its door is closed: it ends
        ("a1 h1 h2 h2", 0),  # another life, that has not answered yet
        ("a1 h2 a2 h2", 1),
    ],
)
def test_who_answered_in_this_life_and_does_not_any_more_hangs(watch: Any, told: str, misses: int) -> None:
    said = {"a": watch.ANSWERS, "h": watch.HANGS, "r": watch.REFUSES}
    now = watch.Seen()
    for word in told.split():
        now = watch.seen(now, said[word[0]], word[1])
    assert now.misses == misses


def test_what_is_stopped_or_starts_is_not_killed(watch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []

    def run(state: str) -> Callable[..., Any]:
        def fake(words: list[str], **_: object) -> Any:
            ran.append(words)
            return type("Done", (), {"stdout": f"ActiveState={state}\nMainPID=7\n".encode()})

        return fake

    monkeypatch.setattr(watch, "note", lambda *_: None)
    for state in ("deactivating", "activating", "inactive"):
        monkeypatch.setattr(watch.subprocess, "run", run(state))
        watch.kill("dsv32-router-a.service")
    assert {words[1] for words in ran} == {"show"}
    monkeypatch.setattr(watch.subprocess, "run", run("active"))
    watch.kill("dsv32-router-a.service")
    assert ran[-1] == ["systemctl", "kill", "-s", "KILL", "--", "dsv32-router-a.service"]


def test_it_is_of_the_standard_library_in_old_syntax() -> None:
    ast.parse(WATCH.read_text(), feature_version=(3, 8))
