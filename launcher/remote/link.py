"""Link: requests to one agent and its answers over a stream of bytes; knows nothing of SSH."""

from __future__ import annotations

import json
import re
import shlex
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, Protocol

HOST_PYTHON = (3, 10)
"""The oldest Python that a managed host may have."""
BEAT_S = 5.0
"""How often a controller says that it is alive; the agent leaves after 30 s of silence."""
SILENCE_S = 20.0
"""An agent answers heartbeats while it works: without a word for so long, it or the network is gone."""
COMPRESSED_FROM = 1 << 10
"""Bytes of a frame's line that are worth compressing."""
DOCSTRING = re.compile(rb'^( *)"""[^"]*"""$', re.MULTILINE)
GREETING_WITHIN = 1 << 16
"""Bytes that a login shell may print before the agent's first frame."""

# Valid in every Python, so that one that is too old can say so. Lines before the mark are passed over: sudo
# takes the password's line only where it wants one.
START = (
    "import sys;v=sys.version_info;"
    'v<{minimum} and (sys.stdout.write("{{\\"old\\":[%d,%d,%d]}}\\n"%v[:3]),sys.exit(9));'
    'import zlib;f=sys.stdin.buffer;n=next(l for l in f if l[:6]==b"agent ");'
    "exec(compile(zlib.decompress(f.read(int(n[6:]))),'agent','exec'))"
)


class Stream(Protocol):
    """Bytes both ways."""

    def send(self, data: bytes) -> None:
        """All of it; OSError when it cannot be sent."""

    def receive(self, within_s: float) -> bytes | None:
        """Some bytes; none at all at the end; None when nothing came in time."""

    def close(self) -> None:
        """Hang up."""


class EndedError(Exception):
    """The stream has ended: the agent is gone, or never started."""


class SilentError(Exception):
    """Not even heartbeats were answered."""


class LateError(Exception):
    """The answer did not come within its time, although the agent lives."""


class OldPythonError(Exception):
    """The host's Python is too old; `found` is its version."""

    def __init__(self, found: tuple[int, ...]) -> None:
        super().__init__(".".join(map(str, found)))
        self.found = found


def start_command() -> str:
    """What starts an agent: one line for a shell, to be followed by `opening()` on stdin."""
    return "python3 -IS -c " + shlex.quote(START.format(minimum=HOST_PYTHON))


@lru_cache
def source(module: str) -> bytes:
    """A module of the agent as it travels: without docstrings, a seventh of it; lines keep their numbers."""
    text = files("launcher.remote").joinpath(module + ".py").read_bytes()
    return zlib.compress(DOCSTRING.sub(lambda m: m[1] + b'""' + b"\n" * m[0].count(b"\n"), text), 9)


def opening() -> bytes:
    """What an agent reads first: itself."""
    return b"agent %d\n" % len(source("agent")) + source("agent")


class Link:
    """One agent at the other end of a stream. One request at a time; heartbeats may come from any thread."""

    def __init__(self, stream: Stream, *, secret: str = "") -> None:
        """`secret` is a line for sudo, before all else."""
        self._stream = stream
        self._sending = threading.Lock()
        self._buffer = b""
        self._requests = 0
        self._modules: set[str] = set()
        self.greeted = False
        """The agent has started."""
        self._send((secret.encode() + b"\n" if secret else b"") + opening())

    def request(
        self,
        frame: Mapping[str, Any],
        *,
        within_s: float,
        blobs: Mapping[str, bytes] | None = None,
        module: str = "",
        on_event: Callable[[dict[str, Any]], None] = lambda event: None,
    ) -> dict[str, Any]:
        """The answer to one request; `module` is sent before it, once."""
        deadline = time.monotonic() + within_s
        self._requests += 1
        data = b""
        if module and module not in self._modules:
            name = f"launcher.remote.{module}"
            data += encode({"module": name}, {"source": source(module)})
            self._modules.add(module)
        self._send(data + encode({"id": self._requests, **frame}, blobs or {}))
        while True:
            got = self._frame(deadline)
            if got.get("id") != self._requests:  # a heartbeat's answer
                continue
            if "event" not in got:
                return got
            on_event(got["event"])

    def beat(self) -> None:
        """Say that the controller lives; silently nothing if that cannot be sent."""
        if self._sending.acquire(blocking=False):
            try:
                self._stream.send(b"{}\n")
            except OSError:  # the request in flight, or the next one, will tell
                pass
            finally:
                self._sending.release()

    def close(self) -> None:
        """Hang up; the agent ends between two ops."""
        self._stream.close()

    def _send(self, data: bytes) -> None:
        with self._sending:
            try:
                self._stream.send(data)
            except TimeoutError:
                raise SilentError from None
            except OSError:
                if self.greeted:
                    raise EndedError from None
                # why it did not start, or that it is too old, is still to be read

    def _frame(self, deadline: float) -> dict[str, Any]:
        """The next frame; what a login shell printed before the first one is passed over."""
        passed = 0
        while not self.greeted:
            line = self._take(None, deadline)
            passed += len(line)
            self._greet(line, passed)
        head = json.loads(self._take(None, deadline))
        if "zlib" in head:
            head = json.loads(zlib.decompress(self._take(head["zlib"], deadline)))
        return dict(head)

    def _take(self, size: int | None, deadline: float) -> bytes:
        """So many bytes; None: a line."""
        heard = time.monotonic()
        while True:
            end = self._buffer.find(b"\n") if size is None else size
            if 0 <= end <= len(self._buffer):
                taken, self._buffer = self._buffer[:end], self._buffer[end + (size is None) :]
                return taken
            now = time.monotonic()
            if now >= deadline:
                raise LateError
            if now - heard > SILENCE_S:
                raise SilentError
            piece = self._stream.receive(min(1.0, deadline - now))
            if piece == b"":
                raise EndedError
            if piece:
                self._buffer += piece
                heard = time.monotonic()

    def _greet(self, line: bytes, passed: int) -> None:
        try:
            first = json.loads(line)
        except ValueError:
            first = None
        if isinstance(first, dict) and "old" in first:
            raise OldPythonError(tuple(first["old"]))
        self.greeted = isinstance(first, dict) and "agent" in first
        if not self.greeted and passed > GREETING_WITHIN:
            raise EndedError


def encode(frame: Mapping[str, Any], blobs: Mapping[str, bytes]) -> bytes:
    """One JSON line, compressed where that pays, and the blobs that it announces."""
    head = {**frame, "blobs": [(name, len(blob)) for name, blob in blobs.items()]} if blobs else frame
    line = json.dumps(head, separators=(",", ":")).encode() + b"\n"
    if len(line) > COMPRESSED_FROM:
        packed = zlib.compress(line)
        line = b'{"zlib":%d}\n' % len(packed) + packed
    return b"".join((line, *blobs.values()))
