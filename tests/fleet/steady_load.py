"""A steady load on a front: so many requests a second, every other one streamed, each judged."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from dataclasses import dataclass
from types import TracebackType

TOKENS, TOKEN_S = 10, 0.1
REQUEST_WITHIN_S = 60


@dataclass(frozen=True)
class Told:
    """One request and its end."""

    began_s: float
    took_s: float
    streamed: bool
    verdict: str
    """`ok`, an HTTP status, `cut` (bytes came, the end did not), or an exception's name."""


class SteadyLoad:
    """Runs while the `with` block does; the requests that it began then come to their end."""

    def __init__(self, address: str, port: int, *, per_second: float = 10) -> None:
        self.address, self.port, self.per_second = address, port, per_second
        self.told: list[Told] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def __enter__(self) -> SteadyLoad:
        self._thread.start()
        self.for_s(1.5)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.for_s(1.5)
        self._stop.set()
        self._thread.join()

    def for_s(self, seconds: float) -> None:
        """Let it go on."""
        time.sleep(seconds)

    @property
    def failed(self) -> list[Told]:
        """Those that did not get a whole answer."""
        return [t for t in self.told if t.verdict != "ok"]

    def failed_after(self, moment_s: float) -> list[Told]:
        """Those that began after a moment and failed."""
        return [t for t in self.failed if t.began_s > moment_s]

    def __str__(self) -> str:
        kinds = Counter(f"{'streamed' if t.streamed else 'whole'} {t.verdict}" for t in self.failed)
        slowest = max((t.took_s for t in self.told if t.verdict == "ok"), default=0.0)
        failed = f"{len(self.failed)} failed {dict(kinds) if kinds else ''}"
        return f"{len(self.told)} requests, {failed}, slowest good answer {slowest:.1f} s"

    async def _run(self) -> None:
        begun, first_s = set(), time.monotonic()
        while not self._stop.is_set():
            number = len(begun)
            await asyncio.sleep(max(0.0, first_s + number / self.per_second - time.monotonic()))
            begun.add(asyncio.create_task(self._one(streamed=number % 2 == 0)))
        await asyncio.gather(*begun)

    async def _one(self, *, streamed: bool) -> None:
        began_s = time.monotonic()
        try:
            verdict = await asyncio.wait_for(self._ask(streamed=streamed), REQUEST_WITHIN_S)
        except (OSError, EOFError, asyncio.TimeoutError) as error:
            verdict = type(error).__name__
        self.told.append(Told(began_s, time.monotonic() - began_s, streamed, verdict))

    async def _ask(self, *, streamed: bool) -> str:
        words = {"model": "tiny", "prompt": [1, 2, 3], "stream": streamed}
        body = json.dumps({**words, "max_tokens": TOKENS, "stub_token_s": TOKEN_S}).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: {self.address}\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        reader, writer = await asyncio.open_connection(self.address, self.port)
        try:
            writer.write(head.encode() + body)
            status = (await reader.readuntil(b"\r\n")).split()[1].decode()
            rest = await reader.read(-1)
        finally:
            writer.close()
        if status != "200":
            return status
        return "ok" if (b"[DONE]" if streamed else b'"usage"') in rest else "cut"
