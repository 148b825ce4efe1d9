"""Journal: the folder of one run, runs/<utc time>-<flow>/; all writing passes one gate for secrets."""

from __future__ import annotations

import json
import os
import platform
import socket
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from launcher import __version__
from launcher.model.plan import Plan
from launcher.model.problem import InputError, Problem
from launcher.model.run import Event, RunRecord
from launcher.model.secret import Secret
from launcher.record.person import person
from launcher.record.plans import FORMAT, plan_document
from launcher.record.redact import without_secrets
from launcher.record.report import report
from launcher.record.whole import write_whole


def runs_folder(environment: Mapping[str, str]) -> Path:
    """`$DSV32_RUNS`, else `runs` where the command was given."""
    return Path(environment.get("DSV32_RUNS") or "runs")


class Journal:
    """A Listener that writes down what happens; threads of many hosts may call it at once."""

    def __init__(self, folder: Path, run: RunRecord, secrets: Iterable[Secret] = ()) -> None:
        self.folder = folder
        self.run = run
        self._secrets = tuple(secrets)
        self._lock = threading.Lock()
        self._entries: list[dict[str, Any]] = []
        self._plan: dict[str, Any] | None = None
        self._write("run.json", json.dumps({"format": FORMAT, **asdict(run)}, indent=1))

    def __call__(self, event: Event) -> None:
        """One line of events.jsonl, on disk when this returns to its caller."""
        line = json.dumps({"format": FORMAT, "time": utc_now(), **asdict(event)}, default=str)
        line = without_secrets(line, self._secrets)
        with self._lock:
            self._entries.append(json.loads(line))
            with (self.folder / "events.jsonl").open("a", encoding="utf-8") as file:
                file.write(line + "\n")

    def plan(self, plan: Plan) -> None:
        """Keep the plan as it was approved."""
        self._plan = plan_document(plan)
        self._write("plan.json", json.dumps(self._plan, indent=1))

    def save_log(self, host: str, name: str, text: str) -> str:
        """Keep a log of a host; the path it was written to."""
        return str(self._write(f"hosts/{host}/{name.removesuffix('.service')}.log", text))

    def keep(self, name: str, text: str) -> str:
        """Keep a text of this run by a name of its own; the path it was written to."""
        return str(self._write(name, text))

    def end(self, exit_code: int, problems: Sequence[Problem]) -> None:
        """Write the result and the report."""
        self.run = replace(self.run, ended=utc_now(), exit_code=int(exit_code))
        record = {"format": FORMAT, **asdict(self.run), "problems": [asdict(p) for p in problems]}
        self._write("run.json", json.dumps(record, indent=1))
        self._write("report.md", report(record, self._plan, self._entries))

    def _write(self, name: str, text: str) -> Path:
        path = self.folder / name
        write_whole(path, without_secrets(text, self._secrets))
        return path


def open_journal(
    runs: Path,
    *,
    flow: str,
    cluster: str,
    argv: Sequence[str],
    data_digest: str,
    why: str = "",
    secrets: Iterable[Secret] = (),
) -> Journal:
    """A new run's folder; two runs of one second get names of their own."""
    now = datetime.now(timezone.utc)
    stem = f"{now:%Y%m%dT%H%M%SZ}-{flow}"
    number = 1
    try:
        runs.mkdir(parents=True, exist_ok=True)
        while True:
            name = stem if number == 1 else f"{stem}-{number}"
            try:
                (runs / name).mkdir()
                break
            except FileExistsError:
                number += 1
    except OSError as error:
        what = f"cannot keep the record of this run: {(error.strerror or 'not writable').lower()}"
        do = "go to a folder that you may write to, or set DSV32_RUNS to one"
        raise InputError(Problem(what, where=str(runs.absolute()), do=do)) from None
    came_from = os.environ.get("SSH_CONNECTION", "").partition(" ")[0]
    run = RunRecord(
        id=name,
        flow=flow,
        cluster=cluster,
        who=person(os.environ),
        where_from=socket.gethostname() + (f" (from {came_from})" if came_from else ""),
        argv=tuple(argv),
        versions={"dsv32-launch": __version__, "python": platform.python_version()},
        data_digest=data_digest,
        started=utc_now(),
        why=why,
    )
    return Journal(runs / name, run, secrets)


def utc_now() -> str:
    """`2026-11-29T02:40:12.345Z`."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
