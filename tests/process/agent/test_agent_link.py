"""Frames between a controller and a real agent process, over pipes instead of SSH."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import time
import zlib
from ast import literal_eval
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from launcher.remote import link
from launcher.remote.link import EndedError, LateError, Link, OldPythonError


class Pipe:
    """An agent started by a shell line, as sshd would."""

    def __init__(self, command: str = "") -> None:
        self.process = subprocess.Popen(
            ["sh", "-c", command or f"exec {link.start_command()}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def send(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self, within_s: float) -> bytes | None:
        assert self.process.stdout
        ready = select.select([self.process.stdout], [], [], within_s)[0]
        return os.read(self.process.stdout.fileno(), 1 << 16) if ready else None

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.process.kill()
    made.process.wait()


def below(root: Path, monkeypatch: pytest.MonkeyPatch, *, silence_s: float = 30) -> None:
    """Let agents keep their lock and record in a folder, and take silence as they should for a test."""
    ours = zlib.decompress(link.source("agent")).decode()
    ours = ours.replace("Agent(sys.stdin.buffer, out)", f"Agent(sys.stdin.buffer, out, {str(root)!r})")
    ours = ours.replace("SILENCE_S = 30\n", f"SILENCE_S = {silence_s}\n")
    assert str(root) in ours
    sources = {"agent": zlib.compress(ours.encode()), "agent_ops": link.source("agent_ops")}
    monkeypatch.setattr(link, "source", sources.__getitem__)


def do(made: Link, *ops: dict[str, Any], within_s: float = 10, **blobs: bytes) -> list[dict[str, Any]]:
    frame = {"do": ops, "by": {"who": "ana", "run": "r1"}, "key": "k"}
    results: list[dict[str, Any]] = made.request(frame, within_s=within_s, blobs=blobs, module="agent_ops")[
        "results"
    ]
    return results


def sleep(seconds: float) -> dict[str, Any]:
    return {"op": "command", "args": {"words": ["sleep", str(seconds)], "within_s": 60}}


def folder(path: Path) -> dict[str, Any]:
    return {"op": "folder", "args": {"path": str(path)}}


def test_requests_one_after_another(pipe: Pipe) -> None:
    made = Link(pipe)
    for n in range(3):
        got = made.request({"ask": [["command", [["echo", str(n)], 5]]]}, within_s=10)
        assert got["answers"][0]["stdout"] == f"{n}\n"
    assert made.greeted


def test_the_agent_is_one_process_in_nobodys_file(pipe: Pipe) -> None:
    made = Link(pipe)
    pid = made.request({"ask": [["command", [["sh", "-c", "echo $PPID"], 5]]]}, within_s=10)["answers"][0][
        "stdout"
    ]
    words = Path(f"/proc/{pid.strip()}/cmdline").read_bytes().split(b"\0")
    assert words[1:3] == [b"-IS", b"-c"]
    assert b"exec(compile(" in words[3]


def test_what_a_login_shell_prints_is_passed_over_and_so_is_a_password_nobody_wanted() -> None:
    noisy = Pipe("echo Welcome; echo '{\"motd\": 1}'; " + link.start_command())
    made = Link(noisy, secret="nobody asked")
    assert made.request({"ask": [["user", ["root"]]]}, within_s=10)["answers"][0]["uid"] == 0
    noisy.close()
    assert noisy.process.wait(timeout=10) == 0


def test_blobs_arrive_whole_and_ops_stop_at_the_first_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below(tmp_path, monkeypatch)
    pipe = Pipe()
    large, small = bytes(range(256)) * 20_000, b"line\n{}\n"
    puts = [{"op": "put", "args": {"path": f"{tmp_path}/{n}"}, "sha256": n} for n in ("large", "small")]
    results = do(
        Link(pipe), *puts, folder(tmp_path / "small"), folder(tmp_path / "x"), large=large, small=small
    )
    assert [r["ok"] for r in results] == [True, True, False]
    assert (tmp_path / "large").read_bytes() == large
    assert (tmp_path / "small").read_bytes() == small
    assert not (tmp_path / "x").exists()
    pipe.close()
    assert pipe.process.wait(timeout=10) == 0


def test_without_a_controller_it_ends_between_two_ops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below(tmp_path, monkeypatch)
    pipe = Pipe()
    ops = (folder(tmp_path / "a"), sleep(1), folder(tmp_path / "b"))
    pipe.send(link.opening())
    pipe.send(link.encode({"module": "launcher.remote.agent_ops"}, {"source": link.source("agent_ops")}))
    pipe.send(link.encode({"id": 1, "do": ops, "by": {"run": "r1"}, "key": "k"}, {}))
    record = tmp_path / "var/log/dsv32/journal.jsonl"
    await_(lambda: record.exists() and "sleep 1" in record.read_text())
    pipe.close()
    assert pipe.process.wait(timeout=10) == 0
    last = record.read_text().splitlines()[-1]
    assert (tmp_path / "a").exists()
    assert '"sleep 1"' in last
    assert '"done"' in last
    assert not (tmp_path / "b").exists()


def await_(holds: Callable[[], bool], *, within_s: float = 10) -> None:
    until = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < until, "it did not come to pass"
        time.sleep(0.02)


def test_silence_ends_it_and_heartbeats_keep_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below(tmp_path, monkeypatch, silence_s=1)
    pipe = Pipe()
    made = Link(pipe)
    assert made.request({"lock": {"who": "ana"}}, within_s=10) == {"id": 1, "held": True}
    for _ in range(10):
        time.sleep(0.2)
        made.beat()
    assert pipe.process.poll() is None
    assert pipe.process.wait(timeout=10) == 0
    with pytest.raises(EndedError):
        made.request({"ask": []}, within_s=5)


def test_a_long_frame_is_compressed_both_ways(pipe: Pipe) -> None:
    made, words = Link(pipe), ["echo", "-n", "ab" * 20_000]
    assert len(link.encode({"id": 1, "ask": [["command", [words, 5]]]}, {})) < 1000
    got = made.request({"ask": [["command", [words, 5]]]}, within_s=10)
    assert got["answers"][0]["stdout"] == "ab" * 20_000


def test_the_lock_has_one_holder_and_goes_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below(tmp_path, monkeypatch)
    first, second = Pipe(), Pipe()
    one, two = Link(first), Link(second)
    assert one.request({"lock": {"who": "ana"}}, within_s=10)["held"]
    assert one.request({"lock": {"who": "ana"}}, within_s=10)["held"]
    assert two.request({"lock": {"who": "bob"}}, within_s=10)["holder"]["who"] == "ana"
    both = one.request({"lock": {"who": "ana"}, "ask": [["read", ["/no/file", 9]]]}, within_s=10)
    assert (both["held"], both["answers"]) == (True, [{"absent": True}])
    first.process.kill()
    first.process.wait()
    assert two.request({"lock": {"who": "bob"}}, within_s=10)["held"]
    second.process.kill()
    second.process.wait()


def test_heartbeats_are_answered_while_an_op_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below(tmp_path, monkeypatch)
    pipe = Pipe()
    made = Link(pipe)
    assert do(made) == []
    with pytest.raises(LateError):
        do(made, sleep(30), within_s=0.2)
    made.beat()
    assert pipe.receive(10) == b"{}\n"
    pipe.process.kill()
    pipe.process.wait()


def test_an_old_python_says_its_version() -> None:
    old = link.start_command().replace("v=sys.version_info", "v=(3,6,9)")
    with pytest.raises(OldPythonError, match=r"3\.6\.9"):
        Link(Pipe(old)).request({"ask": []}, within_s=10)


def test_no_python_is_an_end_before_any_greeting(tmp_path: Path) -> None:
    made = Link(Pipe(f"PATH={tmp_path}; " + link.start_command()))
    with pytest.raises(EndedError):
        made.request({"ask": []}, within_s=10)
    assert not made.greeted


def pythons() -> list[str]:
    """Every Python of this machine, old ones too."""
    named = {shutil.which(f"python{v}") for v in ("2", "2.7", *(f"3.{n}" for n in range(4, 20)))}
    managed = Path.home().glob(".pyenv/versions/*/bin/python")
    found = {*filter(None, named), *map(str, managed)}
    return sorted(
        p for p in found if subprocess.run([p, "-c", ""], stderr=subprocess.DEVNULL).returncode == 0
    )


@pytest.mark.parametrize("python", pythons())
def test_every_python_starts_it_or_says_that_it_is_too_old(python: str) -> None:
    version = subprocess.run(
        [python, "-c", "import sys; print(tuple(sys.version_info[:2]))"], stdout=subprocess.PIPE
    )
    made = Link(Pipe(link.start_command().replace("python3 -IS", f"{python} -S", 1)))
    if literal_eval(version.stdout.decode()) < link.HOST_PYTHON:
        with pytest.raises(OldPythonError):
            made.request({"ask": []}, within_s=10)
    else:
        assert made.request({"ask": [["user", ["root"]]]}, within_s=10)["unknown"] == {}
