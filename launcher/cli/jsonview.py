"""JsonView: the same news as JSON, one object a line on stdout, for programs."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from launcher.cli.words import problem_lines
from launcher.model.finding import Finding
from launcher.model.plan import Plan
from launcher.model.problem import Problem
from launcher.model.run import Event
from launcher.model.wish import Wanted
from launcher.record.plans import change_document, rollout_document


class JsonView:
    """Each line has a `type`; problems go to stderr for people too."""

    def event(self, event: Event) -> None:
        """Something happened."""
        write("event", event)

    def plan(self, plan: Plan, *, title: str, remark: str = "") -> None:
        """Each change, then the plan's digest."""
        for change in plan.changes:
            write("change", change_document(change))
        write(
            "plan",
            {
                "title": title,
                "remark": remark,
                **rollout_document(plan.rollout),
                "holds": plan.holds,
                "digest": plan.digest,
                "changes": len(plan.changes),
                "unreached": {host: problem.what for host, problem in plan.unreached.items()},
            },
        )

    def offline(self, wanted: Wanted) -> None:
        """Each process and each step."""
        deployment = wanted.deployment
        for process in (p for i in (deployment.instances if deployment else ()) for p in i.processes):
            write("process", {**plain(process), "argv": process.argv()})
        for router in deployment.routers if deployment else ():
            write("router", {**plain(router), "argv": router.argv()})
        for step in (s for steps in wanted.steps.values() for s in steps):
            write(
                "step",
                {
                    "host": step.host,
                    "id": step.id,
                    "stage": step.stage,
                    "kind": step.kind,
                    "source": step.source,
                },
            )

    def findings(self, findings: Iterable[Finding]) -> None:
        """Each verdict."""
        for finding in findings:
            write("finding", finding)

    def problems(self, problems: Sequence[Problem]) -> None:
        """Each problem."""
        for problem in problems:
            write("problem", problem)
        sys.stderr.writelines(f"{line}\n" for line in problem_lines(problems))

    def status(self, status: Any) -> None:
        """All of it in one line."""
        write("status", status)

    def result(self, kind: str, value: Any, text: str) -> None:
        """The value; the text is for people."""
        write(kind, value)

    def say(self, text: str) -> None:
        """Nothing: programs do not read remarks."""


def write(kind: str, value: Any) -> None:
    """One line: the value's fields, and `type`, which tells what it is."""
    told = plain(value)
    line = {"type": kind, **(told if isinstance(told, dict) else {"value": told})}
    sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def plain(value: Any) -> Any:
    """A value as JSON has it: dataclasses and mappings as objects, contents by their digest."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes):
        return {"sha256": hashlib.sha256(value).hexdigest(), "size": len(value)}
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
