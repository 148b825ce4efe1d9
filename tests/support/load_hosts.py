"""LoadHosts: hosts whose jobs of load checks end by a script, at the agent's door."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from no_hands import NoHands

from launcher.flows.check_load import RUNNING
from launcher.model.facts import Facts, Probe
from launcher.model.plan import Op
from launcher.model.problem import LauncherError, Problem
from launcher.model.run import Listener

T = TypeVar("T")
NOW = 1000.0


class Killed(BaseException):
    """SIGKILL of the controller, as far as a test in one process can have it."""


@dataclass
class Went:
    """How the ops of one request went."""

    error: Problem | None = None
    ok: bool = True
    failed_index: int | None = None


@dataclass
class LoadHosts(NoHands):
    """Host and words → exit status and output of a program."""

    program: Callable[[str, Sequence[str]], tuple[int | None, str]]
    lacking: Mapping[str, str] = field(default_factory=dict)
    """Host → a program that is not there."""
    serving: frozenset[str] = frozenset()
    running: Mapping[str, str] = field(default_factory=dict)
    """Host → a unit of somebody else's load."""
    killed_after: int = 1 << 30
    """Jobs, after which the controller is killed: they end all the same."""
    silent: frozenset[str] = frozenset()
    files: dict[tuple[str, str], bytes] = field(default_factory=dict)
    units: dict[tuple[str, str], float] = field(default_factory=dict)
    """Host and job → when it ended."""
    begun: list[tuple[str, str]] = field(default_factory=list)

    def ask(
        self, questions: Mapping[str, Sequence[Probe]], *, within_s: float
    ) -> Mapping[str, Facts | Problem]:
        return {
            host: Facts(host, {p: self._answer(host, p) for p in probes})
            for host, probes in questions.items()
        }

    def do(self, host: str, ops: Sequence[Op], *, listener: Listener, within_s: float, subject: str) -> Went:
        if host in self.silent:
            return Went(Problem(f"{host} does not answer", host), ok=False)
        for op in ops:
            self._do(host, op)
        return Went()

    def map(self, hosts: Iterable[str], fn: Callable[[str], T]) -> Mapping[str, T | Problem]:
        found: dict[str, T | Problem] = {}
        for host in hosts:
            try:
                found[host] = fn(host)
            except LauncherError as error:
                found[host] = error.problems[0]
        return found

    def _answer(self, host: str, probe: Probe) -> Any:
        match probe:
            case Probe("job", (name,)):
                return {"state": "done" if (host, name) in self.units else "absent"}
            case Probe("unit", (name,)):
                job = name.removeprefix("dsv32-job-").removesuffix(".service")
                serves = host in self.serving and job == name.removesuffix(".service")
                return {"active": "active" if serves else "inactive", "since": self.units.get((host, job), 0)}
            case Probe("host"):
                return {"time": NOW}
            case Probe("read", (path, _)):
                content = self.files.get((host, path))
                return {"text": content.decode()} if content else {"absent": True}
            case Probe("command", (("sh", "-c", _, program), _)):
                lacks = self.lacking.get(host) == program
                return {"exit": 1 if lacks else 0, "stdout": "" if lacks else program, "stderr": ""}
            case _ if probe == RUNNING:
                return {"exit": 0, "stdout": self.running.get(host, ""), "stderr": ""}
            case _:
                return {"exit": 0, "stdout": "", "stderr": ""}

    def _do(self, host: str, op: Op) -> None:
        match op.verb:
            case "put":
                assert op.content is not None
                self.files[host, op.args["path"]] = op.content
            case "remove":
                for key in [k for k in self.files if k[0] == host and k[1].startswith(op.args["path"] + "/")]:
                    del self.files[key]
            case "units":
                for unit in op.args["stop"]:
                    del self.units[host, unit.removeprefix("dsv32-job-").removesuffix(".service")]
            case "job":
                self._job(host, op.args["name"], op.args["words"][-1])

    def _job(self, host: str, name: str, folder: str) -> None:
        told = []
        for leg in json.loads(self.files[host, f"{folder}/spec.json"])["legs"]:
            status, text = self.program(host, leg["words"])
            told.append({"exit": status, "text": text, "seconds": 1.0})
        self.files[host, f"{folder}/told.json"] = json.dumps(told).encode()
        self.units[host, name] = NOW
        self.begun.append((host, name))
        if len(self.begun) >= self.killed_after:
            raise Killed
