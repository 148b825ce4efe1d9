"""TableFleet: hosts as tables, at the agent's door; knows files and systemd's units, and how to fail."""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from launcher.model.facts import Facts, Probe
from launcher.model.plan import Op
from launcher.model.problem import LauncherError, Problem
from launcher.model.run import Event, Listener

T = TypeVar("T")
UNITS = "/etc/systemd/system/"


class Killed(BaseException):
    """SIGKILL of the controller, as far as a test in one process can have it."""


@dataclass
class Path:
    type: str
    mode: str = "0644"
    owner: str = "root"
    group: str = "root"
    content: bytes = b""


@dataclass
class Unit:
    active: str = "inactive"
    enabled: str = "disabled"
    loaded: bytes | None = None
    release: str = ""
    note: str = ""


@dataclass
class Table:
    """One host."""

    paths: dict[str, Path] = field(default_factory=dict)
    units: dict[str, Unit] = field(default_factory=dict)

    def path(self, path: str, wanted: str = "") -> dict[str, Any]:
        have = self.paths.get(path)
        if have is None:
            return {"type": "absent"}
        sha256 = hashlib.sha256(have.content).hexdigest()
        answer = {"type": have.type, "mode": have.mode, "owner": have.owner, "group": have.group}
        text = {"text": have.content.decode()} if wanted and wanted != sha256 else {}
        return {**answer, "size": len(have.content), "sha256": sha256, "target": None, **text}

    def read(self, path: str, max_bytes: int) -> dict[str, Any]:
        have = self.paths.get(path)
        return {"text": have.content[-abs(max_bytes) :].decode()} if have else {"absent": True}

    def unit(self, name: str) -> dict[str, Any]:
        have, on_disk = self.units.get(name), self.paths.get(UNITS + name)
        if have is None and on_disk is None:
            have = Unit(enabled="")
        have = have or Unit()
        return {
            "load": "loaded" if on_disk else "not-found",
            "active": have.active,
            "sub": "",
            "enabled": have.enabled,
            "needs_reload": have.loaded is not None
            and on_disk is not None
            and have.loaded != on_disk.content,
            "release": have.release,
            "note": have.note,
            "main_pid": 1,
            "result": "success",
            "exit_status": 0,
            "invocation": "",
            "since": 0,
        }

    def ask_units(self, glob: str) -> list[str]:
        names = (p.removeprefix(UNITS) for p in self.paths if p.startswith(UNITS))
        return sorted(n for n in names if fnmatch.fnmatch(n, glob))

    def answer(self, probe: Probe) -> Any:
        known: Mapping[str, Callable[..., Any]] = {
            "path": self.path,
            "read": self.read,
            "unit": self.unit,
            "units": self.ask_units,
        }
        return known[probe.kind](*probe.args)

    def do(self, op: Op) -> None:
        path = op.args.get("path", "")
        args = {k: v for k, v in op.args.items() if k != "path"}
        match op.verb:
            case "put":
                self.paths[path] = Path("file", **args, content=op.content or b"")
            case "folder":
                self.paths[path] = Path("folder", **args)
            case "attributes":
                self.paths[path] = replace(self.paths[path], **args)
            case "remove":
                del self.paths[path]
            case "units":
                self.systemctl(**args)
            case verb:
                raise AssertionError(verb)

    def systemctl(
        self,
        *,
        reload: bool = False,
        disable: Sequence[str] = (),
        enable: Sequence[str] = (),
        stop: Sequence[str] = (),
        restart: Sequence[str] = (),
        start: Sequence[str] = (),
    ) -> None:
        for name in [n.removeprefix(UNITS) for n in self.paths if n.startswith(UNITS)]:
            have = self.units.setdefault(name, Unit())
            if reload or have.loaded is None:
                have.loaded = self.paths[UNITS + name].content
        for name in (*disable, *enable):
            self.units[name].enabled = "enabled" if name in enable else "disabled"
        for name in (*stop, *restart):
            self.units[name].active = "inactive"
        for name in (*restart, *start):
            have = self.units[name]
            if have.active != "active":
                have.active = "active"
                have.release, have.note = recorded((have.loaded or b"").decode())


def recorded(text: str) -> tuple[str, str]:
    """What a start of a unit with this text records: the release, and the note beside it."""
    release = re.search(r"echo (\w+) >", text)
    note = re.search(r'echo "([^"]*)" >>', text)
    return release[1] if release else "", note[1].replace("%%", "%") if note else ""


@dataclass
class Result:
    ok: bool
    failed_index: int | None = None
    error: Problem | None = None


@dataclass
class TableFleet:
    tables: dict[str, Table]
    unreached: set[str] = field(default_factory=set)
    broken: Callable[[str, Op], bool] = lambda host, op: False
    """Ops that fail."""
    before: Callable[[str], None] = lambda host: None
    """Something that happens on a host before it is asked."""
    ops_left: int | None = None
    """The controller dies after so many ops."""
    log: list[tuple[str, str]] = field(default_factory=list)
    """(host, what was sent), in order."""

    def lock(self, hosts: Iterable[str]) -> dict[str, Problem]:
        return {}

    def ask(
        self, questions: Mapping[str, Sequence[Probe]], *, within_s: float
    ) -> Mapping[str, Facts | Problem]:
        answers: dict[str, Facts | Problem] = {}
        for host, probes in questions.items():
            if host in self.unreached:
                answers[host] = Problem("no answer within 15 s", where=host)
                continue
            self.before(host)
            self.log.append((host, "ask"))
            answers[host] = Facts(host, {p: self.tables[host].answer(p) for p in probes})
        return answers

    def do(
        self, host: str, ops: Sequence[Op], *, listener: Listener, within_s: float, subject: str
    ) -> Result:
        for index, op in enumerate(ops):
            if self.ops_left is not None:
                if self.ops_left == 0:
                    raise Killed
                self.ops_left -= 1
            self.log.append((host, words(op)))
            if self.broken(host, op):
                return Result(False, index, Problem("disk is full", do="free some"))
            self.tables[host].do(op)
        return Result(True)

    def reboot(self, host: str, *, listener: Listener, within_s: float) -> Problem | None:
        raise AssertionError("tables do not boot")

    def map(self, hosts: Iterable[str], fn: Callable[[str], T]) -> Mapping[str, T | Problem]:
        results: dict[str, T | Problem] = {}
        for host in hosts:
            try:
                results[host] = fn(host)
            except LauncherError as error:
                results[host] = error.problems[0]
        return results


def words(op: Op) -> str:
    if op.verb == "units":
        return " ".join(
            ["units", *(f"{v} {' '.join(n) if n is not True else ''}".strip() for v, n in op.args.items())]
        )
    return f"{op.verb} {op.args.get('path', '')}".strip()


def fleet_of(hosts: Iterable[str]) -> TableFleet:
    return TableFleet({host: Table() for host in hosts})


def quiet(event: Event) -> None:
    """A listener that has nothing to do."""
