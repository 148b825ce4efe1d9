"""Logs of real engines, routers and fronts: starts are nothing wrong, deaths have their cause."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from samples import ROOT

from launcher.flows.diagnose import Report, of_files
from launcher.health.matches import Match
from launcher.load.document import parse

HERE = Path(__file__).parent
LOGS = ROOT / "tests/support/logs"
QUIET = [
    *sorted(HERE.glob("quiet/*/*/*.log")),
    *(LOGS / name for name in ("prefill-ready.log", "decode-deepgemm-warmup.log")),
]


RECORDS: Mapping[str, Mapping[str, Any]] = parse((HERE / "records.yaml").read_text(), "records.yaml").values  # type: ignore[assignment]


def key(match: Match) -> str:
    return match.signature.id if match.signature else "unknown"


def of(path: Path) -> Report:
    return of_files([path], version="", data_dir=None)


@pytest.mark.parametrize("path", QUIET, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_an_ordinary_log_is_nothing_wrong(path: Path) -> None:
    assert [c.likely for c in of(path).diagnosis.causes] == []


def test_ten_of_them_are_held() -> None:
    assert len(QUIET) >= 10


@pytest.mark.parametrize("name", ["sandbox", "load", "restart"])
def test_a_whole_deployment_that_starts_serves_or_is_restarted_in_order_is_nothing_wrong(name: str) -> None:
    assert not of(HERE / "quiet" / name).found


@pytest.mark.parametrize("name", RECORDS)
def test_what_was_really_broken_is_told_by_its_cause(name: str) -> None:
    """What only looks on (front, router, guard) and what fell with it is never the first cause."""
    told = RECORDS[name]
    first, *others = of(HERE / "records" / name).diagnosis.causes
    assert (key(first.first), first.first.line.host, first.do) == (told["first"], told["at"], told["do"])
    assert [key(effect.match) for effect in first.effects] == told.get("then", [])
    assert [key(cause.first) for cause in others] == told.get("also", [])


def test_each_record_has_its_story() -> None:
    assert {path.name for path in (HERE / "records").iterdir()} == RECORDS.keys()
    assert len(RECORDS) >= 30
