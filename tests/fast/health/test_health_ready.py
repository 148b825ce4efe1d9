"""The start of an instance is told by phases, and ends early with the one process that is to blame."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_clock import FakeClock
from samples import ROOT, sample
from scripted_hosts import Process, ScriptedHosts

from launcher.health import ready
from launcher.health.errors import Line
from launcher.health.phases import Progress, advance, behind
from launcher.model.deployment import Instance
from launcher.model.profile import Engine
from launcher.model.run import Event
from launcher.model.wish import Wanted
from launcher.resolve import resolve

DATA = ROOT / "tests/support/logs"
OUT_OF_MEMORY = "(EngineCore_DP1 pid=7) ERROR 11-29 16:11:05 [core.py:1330] ValueError: No available memory"
PEER_GONE = (
    "(EngineCore_DP0 pid=9) ERROR 11-29 16:11:06 [core.py:1330] RuntimeError: Connection closed by peer"
)


@pytest.fixture
def wanted(tmp_path: Path) -> Wanted:
    """prefill-0 on h01, decode-0 over h02 and h03."""
    return resolve(sample("sandbox-dp2", tmp_path))


@pytest.fixture
def engine(wanted: Wanted) -> Engine:
    assert wanted.wish.profile.engine
    return wanted.wish.profile.engine


@pytest.fixture
def decode(wanted: Wanted) -> Instance:
    assert wanted.deployment
    return wanted.deployment.instance("decode-0")


def test_phases_follow_the_recorded_log_of_a_start(engine: Engine, decode: Instance) -> None:
    progress = Progress(decode.processes[0], 0, since_s=0.0)
    names = []
    for number, text in enumerate((DATA / "prefill-ready.log").read_text().splitlines()):
        progress = advance(progress, [Line(0.0, text)], engine.phases, now_s=float(number))
        names.append(engine.phases[progress.phase].name)

    assert list(dict.fromkeys(names)) == [p.name for p in engine.phases]


def test_a_log_that_ends_in_kernel_warm_up_is_in_warm_up(engine: Engine, decode: Instance) -> None:
    lines = [Line(0.0, text) for text in (DATA / "decode-deepgemm-warmup.log").read_text().splitlines()]
    progress = advance(Progress(decode.processes[0], 0, 0.0), lines, engine.phases, 7.0)

    assert engine.phases[progress.phase].name == "warm-up"
    assert progress.since_s == 7.0


def test_the_slowest_is_blamed_not_the_peer_that_waits_for_it(engine: Engine, decode: Instance) -> None:
    first, second = decode.processes
    waits = Progress(first, phase=3, since_s=0.0)
    slow = Progress(second, phase=2, since_s=200.0)
    within = engine.phases[3].within_s

    assert behind([waits, slow], engine.phases, now_s=float(within)) is None
    assert behind([waits, slow], engine.phases, now_s=within + 1.0) == slow


def test_ready_when_every_process_answers(wanted: Wanted, decode: Instance) -> None:
    hosts = ScriptedHosts({"h02": Process(answers_from=2), "h03": Process(answers_from=5)})
    events: list[Event] = []

    assert ready.await_ready(hosts, wanted, decode, events.append, clock=FakeClock()) is None

    assert hosts.tick == 5
    assert (events[-1].kind, events[-1].text) == ("phase", "healthy")
    assert hosts.asked.count("h02") == hosts.asked.count("h03") == 5, "one request a host and poll"


def test_a_death_names_host_unit_status_and_first_error(wanted: Wanted, decode: Instance) -> None:
    hosts = ScriptedHosts(
        {
            "h02": Process({4: [PEER_GONE]}, ends_at=5, result="success", exit_status=0),
            "h03": Process({3: [OUT_OF_MEMORY, "Traceback (most recent call last):"]}, ends_at=4),
        }
    )
    saved: dict[str, str] = {}

    def save_log(host: str, unit: str, text: str) -> str:
        saved[host] = text
        return f"runs/r1/hosts/{host}/{unit}.log"

    problem = ready.await_ready(
        hosts, wanted, decode, lambda event: None, save_log=save_log, clock=FakeClock()
    )

    assert problem is not None
    assert "decode-0" in problem.what
    assert "ended with exit status 1" in problem.what
    assert problem.where == "h03, unit dsv32-decode-0.service"
    assert problem.why == "first error, on h03: ValueError: No available memory"
    assert "Connection closed by peer" in saved["h02"]
    assert "hosts/h03" in problem.more


def test_an_end_with_status_0_is_a_death(wanted: Wanted, decode: Instance) -> None:
    hosts = ScriptedHosts(
        {"h02": Process({1: ["bye"]}, ends_at=3, result="success", exit_status=0), "h03": Process()}
    )

    problem = ready.await_ready(hosts, wanted, decode, lambda event: None, clock=FakeClock())

    assert problem is not None
    assert "on h02 ended with exit status 0" in problem.what
    assert problem.why == "its last line: bye"
    assert hosts.tick <= 5


def test_a_silent_host_ends_the_wait(wanted: Wanted, decode: Instance) -> None:
    hosts = ScriptedHosts({"h02": Process(), "h03": Process()}, silent_from={"h03": 3})

    problem = ready.await_ready(hosts, wanted, decode, lambda event: None, clock=FakeClock())

    assert problem is not None
    assert problem.where.startswith("h03")
    assert problem.why == "h03 does not answer"


def test_an_interrupted_wait_says_where_it_was(wanted: Wanted, decode: Instance) -> None:
    hosts: Any = ScriptedHosts({"h02": Process({1: ["Starting to load model m"]}), "h03": Process()})

    problem = ready.await_ready(
        hosts, wanted, decode, lambda event: None, interrupted=lambda: hosts.tick >= 4, clock=FakeClock()
    )

    assert problem is not None
    assert problem.what == "decode-0 is still starting, in phase process on h03"
