"""ScriptedHosts: hosts that answer by a script, at the agent's door; each request is one tick of its time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.plan import Op
from launcher.model.problem import Problem
from launcher.model.run import Listener


@dataclass
class Process:
    """One unit: its log by tick, when it answers, and when and how it ends."""

    log: Mapping[int, Sequence[str]] = field(default_factory=dict)
    answers_from: int | None = None
    ends_at: int | None = None
    result: str = "exit-code"
    exit_status: int = 1

    def unit(self, tick: int) -> dict[str, Any]:
        ended = self.ends_at is not None and tick >= self.ends_at
        clean = self.result == "success"
        return {
            "active": ("inactive" if clean else "failed") if ended else "active",
            "invocation": "" if ended and clean else "i1",
            "result": self.result if ended else "success",
            "exit_status": self.exit_status if ended else 0,
            "since": 1.0,
        }

    def journal(self, tick: int, after: str) -> dict[str, Any]:
        begin = int(after) if after.isdigit() else -1
        entries = [
            {"time": float(t), "message": text, "pid": 70, "priority": 6}
            for t, texts in sorted(self.log.items())
            if begin < t <= tick
            for text in texts
        ]
        return {"entries": entries, "cursor": str(tick)}


@dataclass
class ScriptedHosts:
    """Host → its one process, and what its addresses answer to a POST."""

    processes: Mapping[str, Process]
    silent_from: Mapping[str, int] = field(default_factory=dict)
    post: Callable[[str, dict[str, Any], dict[str, str]], dict[str, Any]] | None = None
    pages: Callable[[str], str | None] = lambda url: None
    tick: int = 0
    asked: list[str] = field(default_factory=list)

    def ask(
        self, questions: Mapping[str, Sequence[Probe]], *, within_s: float
    ) -> Mapping[str, Facts | Problem]:
        self.tick += 1
        return {host: self._answers(host, probes) for host, probes in questions.items()}

    def do(self, host: str, ops: Sequence[Op], *, listener: Listener, within_s: float, subject: str) -> Any:
        raise AssertionError("health only looks")

    def _answers(self, host: str, probes: Sequence[Probe]) -> Facts | Problem:
        self.asked.append(host)
        if self.tick >= self.silent_from.get(host, self.tick + 1):
            return Problem(f"{host} does not answer", where=host)
        return Facts(host, {p: self._answer(host, p) for p in probes})

    def _answer(self, host: str, probe: Probe) -> Any:
        match probe:
            case Probe("unit"):
                return self.processes[host].unit(self.tick)
            case Probe("journal", (_, _, _, after)):
                return self.processes[host].journal(self.tick, after)
            case Probe("http", ("POST", url, body, headers, _)):
                assert self.post is not None
                return self.post(url, json.loads(body), dict(headers))
            case Probe("http", ("GET", url, *_)):
                page = self.pages(url)
                if page is not None:
                    return {"status": 200, "body": page}
                from_tick = self.processes[host].answers_from
                healthy = from_tick is not None and self.tick >= from_tick
                return {"status": 200, "body": ""} if healthy else {"error": "connection refused"}
            case _:
                return Unknown(f"no script for {probe.kind}")
