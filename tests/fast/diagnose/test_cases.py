"""Whole logs of several hosts: the first cause, on which host, what to do, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from launcher.health.diagnose import Diagnosis, diagnose
from launcher.health.matches import Match
from launcher.load.choice import Choice
from launcher.load.data import Data, shipped
from launcher.load.document import parse
from launcher.load.engines import read_engine
from launcher.load.logs import instance_of
from launcher.load.signatures import read_log_knowledge
from launcher.model.signature import LogLine

DATA = Data((shipped(),))
KNOWN = read_log_knowledge(DATA)
ENGINE = read_engine(Choice("vllm-0.33", ""), DATA)
HOUR_S = 1_795_975_200.0


def cases() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path in sorted(Path(__file__).parent.glob("cases/*.yaml")):
        values = parse(path.read_text(), path.name).values
        assert isinstance(values, dict)
        yield from values.items()  # type: ignore[misc]


CASES = dict(cases())


def lines_of(logs: Mapping[str, str]) -> Iterator[LogLine]:
    """`MM:SS text`, by host and unit."""
    for log, text in logs.items():
        host, unit = log.split("/")
        for line in text.splitlines():
            clock, _, said = line.partition(" ")
            minutes, _, seconds = clock.partition(":")
            time_s = HOUR_S + 60 * int(minutes) + float(seconds)
            yield LogLine(host, unit, time_s, said, instance_of(unit))


def name(match: Match) -> str:
    return match.signature.id if match.signature else "unknown"


def diagnosed(case: Mapping[str, Any]) -> Diagnosis:
    return diagnose(lines_of(case["logs"]), KNOWN, ENGINE, version=case.get("version", ""))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_first_cause(case: Mapping[str, Any]) -> None:
    causes = diagnosed(case).causes
    if "first" not in case:
        assert [c.likely for c in causes] == []
        return
    first, *others = causes
    assert (name(first.first), first.first.line.host, first.do) == (case["first"], case["at"], case["do"])
    assert [name(e.match) for e in first.effects] == case.get("then", [])
    assert [name(c.first) for c in others] == case.get("also", [])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_order_of_files_does_not_matter(case: Mapping[str, Any]) -> None:
    """Logs are gathered from hosts as they answer."""
    backwards = {**case, "logs": dict(reversed(case["logs"].items()))}
    assert [c.do for c in diagnosed(backwards).causes] == [c.do for c in diagnosed(case).causes]


def test_there_are_as_many_as_were_promised() -> None:
    assert sum("first" in case for case in CASES.values()) >= 60
