"""A steady load on a front: prompts with known answers, every other one streamed, each judged."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import urlsplit

from launcher.health.completion import completion
from launcher.model.problem import LauncherError, Problem

Verdict: TypeAlias = Literal["ok", "failed", "hung", "wrong", "other"]
"""hung: not ended within the request's time-out; wrong: a whole answer that is not the known one; other: such
an answer to a request that met others, of an engine whose answers depend on what else is in a batch."""
# so many different prompts; each is asked once, alone, before the load begins
PROMPTS = 8
LEAD_S = 2.0
"""Before and after what happens meanwhile."""


@dataclass(frozen=True, slots=True)
class Told:
    """One request and its end; times are of `time.monotonic`."""

    began_s: float
    ended_s: float
    streamed: bool
    verdict: Verdict
    how: str = ""
    """Of one that failed: an HTTP status, `cut` (bytes came, the end did not), or an exception's name."""


L = TypeVar("L", bound="SteadyLoad")


class SteadyLoad:
    """Runs while the `with` block does; the requests that it began then come to their end."""

    def __init__(
        self,
        url: str,
        served_name: str,
        *,
        per_second: float,
        within_s: float,
        nonce: str,
        also: Mapping[str, Any] | None = None,
    ) -> None:
        """`url`: of the front; `within_s`: the time-out of one request; `nonce` makes prompts new ones.

        `also`: what else requests of the load say, that changes no answer.
        """
        place = urlsplit(url)
        self._place = (place.hostname or "", place.port or 80)
        self._bodies = [completion(served_name, nonce=nonce, turn=turn) for turn in range(PROMPTS)]
        self._answers: list[str] = []
        self._alone_only = False
        self._also = {**(also or {})}
        self._begun = self._open = 0
        self._per_second, self._within_s = per_second, within_s
        self.told: list[Told] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="load", daemon=True)

    def learn(self) -> None:
        """Ask each prompt alone: what it is answered now is the known answer. Then all at once: do answers
        depend on what else runs? Those of vLLM's CPU kernels do. LauncherError where one is not answered."""
        self._answers = [self._answered([body])[0] for body in self._bodies]
        self._alone_only = self._answered(self._bodies) != self._answers

    def _answered(self, bodies: Sequence[Mapping[str, Any]]) -> list[str]:
        async def ask() -> list[tuple[str, str]]:
            asked = (self._ask(body, streamed=False) for body in bodies)
            return await asyncio.wait_for(asyncio.gather(*asked), self._within_s)

        try:
            told = asyncio.run(ask())
        except (OSError, EOFError, asyncio.TimeoutError) as error:
            told = [(type(error).__name__, "")]
        if how := next((how for how, _ in told if how), ""):
            what = f"before anything is broken a completion ended with {how}"
            where = ":".join(map(str, self._place))
            raise LauncherError(Problem(what, where, do="dsv32-launch diagnose"))
        return [text for _, text in told]

    def __enter__(self: L) -> L:
        self._thread.start()
        time.sleep(LEAD_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            time.sleep(LEAD_S)
        self._stop.set()
        self._thread.join()

    def answered_after(self, moment_s: float) -> bool:
        """Has a request that began after the moment got its right answer?"""
        return any(t.began_s > moment_s and t.verdict == "ok" for t in list(self.told))

    async def _run(self) -> None:
        begun: set[asyncio.Task[None]] = set()
        first_s = time.monotonic()
        while not self._stop.is_set():
            number = len(begun)
            await asyncio.sleep(max(0.0, first_s + number / self._per_second - time.monotonic()))
            begun.add(asyncio.create_task(self._one(number)))
        await asyncio.gather(*begun)

    async def _one(self, number: int) -> None:
        began_s, streamed = time.monotonic(), number % 2 == 0
        turn = (number + number // PROMPTS) % PROMPTS  # each prompt streamed in one round, whole in the next
        verdict: Verdict = "failed"
        self._begun, self._open = self._begun + 1, self._open + 1
        begun, alone = self._begun, self._open == 1
        try:
            how, text = await asyncio.wait_for(
                self._ask({**self._bodies[turn], **self._also}, streamed=streamed), self._within_s
            )
            if not how:
                met = not alone or self._begun > begun
                different: Verdict = "other" if met and self._alone_only else "wrong"
                verdict = "ok" if text == self._answers[turn] else different
        except asyncio.TimeoutError:
            verdict, how = "hung", f"no end within {self._within_s:.0f} s"
        except (OSError, EOFError) as error:
            how = type(error).__name__
        self._open -= 1
        self.told.append(Told(began_s, time.monotonic(), streamed, verdict, how))

    async def _ask(self, body: Mapping[str, Any], *, streamed: bool) -> tuple[str, str]:
        """What went wrong, and the text of the answer."""
        host, port = self._place
        content = json.dumps({**body, "stream": streamed}).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(head.encode() + content)
            answer, _, rest = (await reader.read(-1)).partition(b"\r\n\r\n")
        finally:
            writer.close()
        if not answer:
            return "closed", ""
        status = answer.split(maxsplit=2)[1].decode()
        if status != "200":
            return status, ""
        rest = whole_body(rest) if b"chunked" in answer.lower() else rest
        lines = rest.decode("utf-8", "replace").splitlines()
        text = streamed_text(lines) if streamed else whole_text(lines)
        return ("cut", "") if text is None else ("", text)


def whole_body(chunks: bytes) -> bytes:
    """What came in chunks, put together, as far as it came."""
    body = b""
    while chunks:
        size, _, chunks = chunks.partition(b"\r\n")
        length = int(size.split(b";")[0] or b"0", 16)
        if not length:
            break
        body, chunks = body + chunks[:length], chunks[length + 2 :]
    return body


def whole_text(lines: Sequence[str]) -> str | None:
    """The text of an answer that came at once; None for less than a whole one."""
    told = next((line for line in lines if line.startswith("{")), "")
    return _text(told, needed="usage")


def streamed_text(lines: Sequence[str]) -> str | None:
    """The text of a streamed answer; None where its end did not come."""
    events = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    if events[-1:] != ["[DONE]"]:
        return None
    pieces = [_text(event) for event in events[:-1]]
    return None if None in pieces else "".join(piece or "" for piece in pieces)


def _text(document: str, *, needed: str = "choices") -> str | None:
    try:
        told = json.loads(document)
        return "".join(str(c["text"]) for c in told["choices"]) if needed in told else None
    except (ValueError, KeyError, TypeError):
        return None


@dataclass(frozen=True, slots=True)
class Planted:
    """When it was planted, and what has nothing to do with it; times are of `time.monotonic`."""

    began_s: float
    done_s: float
    safe: int
    """So many requests ran on other instances of the pool."""


@dataclass(frozen=True, slots=True)
class Count:
    """What became of the requests."""

    ok: int
    open: int
    """Were in flight when it was planted."""
    in_flight: int
    """Of these, so many failed."""
    outage: int
    """Failed, and began between that and the moment at which all was whole again."""
    after: int
    """Failed, and began later."""
    hung: int
    wrong: int
    other: int
    """Whole, and not to be judged."""
    slowest_s: float
    """Of the good answers."""


def count(told: Sequence[Told], planted: Planted, whole_s: float) -> Count:
    """Each request once."""
    failed = [t.began_s for t in told if t.verdict == "failed"]
    good = [t.ended_s - t.began_s for t in told if t.verdict == "ok"]
    return Count(
        ok=len(good),
        open=sum(t.began_s <= planted.done_s and t.ended_s >= planted.began_s for t in told),
        in_flight=sum(s <= planted.done_s for s in failed),
        outage=sum(planted.done_s < s <= whole_s for s in failed),
        after=sum(s > whole_s for s in failed),
        hung=sum(t.verdict == "hung" for t in told),
        wrong=sum(t.verdict == "wrong" for t in told),
        other=sum(t.verdict == "other" for t in told),
        slowest_s=max(good, default=0.0),
    )
