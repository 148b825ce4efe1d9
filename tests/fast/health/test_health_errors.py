"""The line that is reported is the first that says why, on real logs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from samples import ROOT, sample

from launcher.health.errors import Line, first_error
from launcher.health.phases import Progress
from launcher.health.watch import Member, hear, questions
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.profile import Engine
from launcher.resolve import resolve

DATA = ROOT / "tests/support/logs"
STAMP = re.compile(r"\d\d-\d\d (\d\d):(\d\d):(\d\d)")


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    engine = sample("prod-2p1d-current", tmp_path).profile.engine
    assert engine
    return engine


def lines_of(name: str) -> list[Line]:
    """A recorded log, each line with the last time that the engine wrote before it."""
    found, time_s = [], 0.0
    for text in (DATA / name).read_text().splitlines():
        if stamp := STAMP.search(text):
            hours, minutes, seconds = map(int, stamp.groups())
            time_s = hours * 3600.0 + minutes * 60 + seconds
        found.append(Line(time_s, text))
    return found


def test_a_death_is_told_by_its_cause_and_not_by_its_last_line(engine: Engine) -> None:
    lines = lines_of("prefill-died-at-start.log")
    assert "Engine core initialization failed" in lines[-1].text

    error = first_error({"gpu01": lines}, engine)

    assert error is not None
    assert error.text.startswith("ValueError: No available memory for the cache blocks.")
    assert error.host == "gpu01"


@pytest.mark.parametrize("name", ["prefill-ready.log", "decode-deepgemm-warmup.log"])
def test_a_healthy_start_has_no_error_though_it_prints_tracebacks(engine: Engine, name: str) -> None:
    lines = lines_of(name)
    assert any("Traceback" in line.text for line in lines)

    assert first_error({"gpu01": lines}, engine) is None


def test_of_several_hosts_the_earliest_error_counts(engine: Engine) -> None:
    logs = {
        "gpu03": [
            Line(20.0, "(EngineCore_DP1 pid=7) RuntimeError: Connection closed by peer [10.0.0.14]:2000")
        ],
        "gpu04": [Line(19.5, "(EngineCore_DP4 pid=9) torch.OutOfMemoryError: CUDA out of memory")],
    }

    error = first_error(logs, engine)

    assert error is not None
    assert (error.host, error.text) == ("gpu04", "torch.OutOfMemoryError: CUDA out of memory")


def test_an_earlier_start_is_not_blamed_when_systemd_forgot_the_invocation(tmp_path: Path) -> None:
    """Of a unit that ended well only the whole journal is left; the lines of its last start count."""
    wanted = resolve(sample("sandbox-dp2", tmp_path))
    engine = wanted.wish.profile.engine
    assert wanted.deployment
    assert engine
    process = wanted.deployment.instance("decode-0").processes[0]
    member = Member(Progress(process, 0, since_s=0.0), 0.0, unit={"active": "inactive"})
    asked = questions(member, engine)
    texts = [
        (1, "Starting decode-0..."),
        (7, "ValueError: what the start before it died of"),
        (1, "Starting decode-0..."),
        (9, "RuntimeError: a peer of the group is gone"),
    ]
    entries = [{"time": float(n), "message": text, "pid": pid} for n, (pid, text) in enumerate(texts)]
    answers: dict[Probe, Any] = {p: Unknown("down") for p in asked}
    answers[asked[0]] = {"active": "inactive", "invocation": "", "result": "success", "exit_status": 0}
    answers[asked[-1]] = {"entries": entries, "cursor": "c"}
    heard = hear(member, Facts(process.host, answers), engine, 1.0)
    error = first_error({process.host: heard.lines}, engine)
    assert error
    assert error.text == "RuntimeError: a peer of the group is gone"
