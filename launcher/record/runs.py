"""Runs that were: their folders read back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launcher.model.problem import InputError, Problem
from launcher.record.report import Document, report


@dataclass(frozen=True, slots=True)
class RunStory:
    """All that a run's folder holds but the hosts' logs."""

    folder: Path
    run: Document
    plan: Document | None
    events: tuple[Document, ...]

    def text(self) -> str:
        """Its report, rendered anew: also for a run that never came to write one."""
        return report(self.run, self.plan, self.events)


def read_runs(runs: Path) -> tuple[Document, ...]:
    """run.json of each run, oldest first."""
    return tuple(_json(path) for path in sorted(runs.glob("*/run.json")))


def read_run(runs: Path, name: str) -> RunStory:
    """The run called `name`, or `last`; InputError where there is none."""
    names = [path.parent.name for path in sorted(runs.glob("*/run.json"))]
    if not names or (name != "last" and name not in names):
        raise InputError(
            Problem(
                what=f"no run is called {name}" if names else "there are no runs",
                where=str(runs),
                why=f"there are {', '.join(names[-3:])}" if names else "",
                do="dsv32-launch runs, or set DSV32_RUNS to the folder that holds them",
            )
        )
    folder = runs / (names[-1] if name == "last" else name)
    plan, events = folder / "plan.json", folder / "events.jsonl"
    return RunStory(
        folder=folder,
        run=_json(folder / "run.json"),
        plan=_json(plan) if plan.exists() else None,
        events=tuple(_lines(events.read_text(encoding="utf-8"))) if events.exists() else (),
    )


def kept_text(runs: Path, name: str, file: str) -> tuple[Path, str]:
    """What the run `name` kept under this name, or the newest that kept one: `last`; a path of such a file is
    taken as it is. InputError where there is none."""
    names = [path.parent.name for path in sorted(runs.glob(f"*/{file}"))]
    path = (
        Path(name)
        if name.endswith(".json")
        else runs / (names[-1] if name == "last" and names else name) / file
    )
    try:
        return path, path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        do = "name a run that `dsv32-launch runs` lists"
        raise InputError(Problem("this file is no text", str(path), do=do)) from None
    except OSError:
        why = f"there are {', '.join(names[-3:])}" if names else "no run has any"
        do = "name one of these, or set DSV32_RUNS to the folder that holds the runs"
        raise InputError(Problem(f"run {name} kept no {file}", str(runs), why, do)) from None


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _lines(text: str) -> list[Any]:
    # a killed controller may have left half a line
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
