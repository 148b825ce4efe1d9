"""What bench takes and prints: options, tables, verdicts, exit codes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_records import LOAD, METHOD, POINT, recorded, sla, target
from samples import sample

from launcher.bench.search import Answer, Tried
from launcher.bench.verdict import judge
from launcher.cli.benching import axis_of, chosen, exit_of, listed, numbers, start_of
from launcher.cli.benchtext import found, text
from launcher.flows.bench import Searched, bench_of
from launcher.flows.bench_run import Bench
from launcher.load.data import Data, shipped
from launcher.model.bench import Measured
from launcher.model.problem import Exit, InputError
from launcher.model.sla import Limit
from launcher.resolve import resolve

DATA = Data((shipped(),))
LEVEL = sla(ttft_ms=Limit(at_most=5000.0), tokens_per_s=Limit(at_least=10_000.0))
KEPT = sla(ttft_ms=Limit(at_most=6000.0))


def measured(level: object = LEVEL, **changed: Any) -> Measured:
    runs = [recorded(mean_e2el_ms=5800.0, **changed), recorded(mean_e2el_ms=5800.0, mean_ttft_ms=5170.0)]
    return judge(LOAD, level, METHOD, target=target(), point=POINT, results=runs)  # type: ignore[arg-type]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    wanted = resolve(sample("sandbox-dp2", tmp_path))
    made = bench_of(wanted, LOAD, LEVEL, METHOD, target="service", seed=1, repeats=2, salt="run")
    return replace(made, target=target())


def test_a_point_is_told_with_figures_verdicts_and_what_they_are_divided_by(bench: Bench) -> None:
    told = text(bench, [measured()])
    head, *_ = told.splitlines()
    assert head == "load (4096 + 32 tokens) → service, the front on gpu01; client on gpu01"
    row = next(line for line in told.splitlines() if line.startswith("concurrency 16 "))
    assert " ".join(row.split()) == (
        "concurrency 16 1 64/64 24.3 15.3 2.63 10864.8 84.2"
        " 5162.05 3844.81 12580.54 20.95 32.74 21.30 532.72 5800.00 –"
    )
    assert "concurrency 16, 64 prompts: FAIL (level)" in told
    assert (
        "  FAIL         ttft_ms mean 5162.05, limit ≤ 5000, margin -3.2% (n = 64 + 64, ±3.98)"
        in told.splitlines()
    )
    assert "  PASS         tokens_per_s mean 10864.78 ≥ 10000, margin +8.6% (n = 64 + 64, ±0.00)" in told
    assert "1358.1 tokens/s per prefill GPU, of 8; 10.5 output tokens/s per decode GPU, of 8; client" in told


def test_a_doubt_stands_beside_what_it_keeps_from_being_judged(bench: Bench) -> None:
    told = text(bench, [measured(completed=60)]).splitlines()
    assert "concurrency 16, 64 prompts: CANNOT TELL (level)" in told
    assert "  doubt        4 of 64 requests failed" in told


def test_a_search_ends_in_a_value_and_in_what_the_next_one_missed(bench: Bench) -> None:
    answer = Answer(8.0, True, Tried(16.0, "FAIL"))
    assert found(Searched("concurrency", (measured(),), answer)).splitlines() == [
        "highest concurrency that keeps it: 8 requests at once, confirmed by a longer run",
        "next up: 16: FAIL, ttft_ms mean 5162.05, limit ≤ 5000, margin -3.2% (n = 64 + 64, ±3.98)",
    ]
    none = Answer(None, False, Tried(16.0, "FAIL"))
    assert found(Searched("concurrency", (measured(),), none)).startswith("no concurrency keeps it: 16: FAIL")
    assert found(Searched("rate", (), Answer(None, False, None))) == "nothing was measured", "ctrl-C"
    endless = Answer(64.0, False, None)
    assert found(Searched("concurrency", (), endless)).endswith("no limit was met up to there")


def test_exit_codes() -> None:
    missed, kept, doubtful = measured(), measured(KEPT), measured(KEPT, completed=60)

    def code(*points: Measured, answer: Answer | None = None) -> Exit:
        searched = Searched("rate", points, answer) if answer else None
        return exit_of(points, searched)

    assert [code(p) for p in (kept, missed, doubtful)] == [0, 5, 3]
    assert [code(kept, doubtful), code(doubtful, missed)] == [3, 5]
    assert code(kept, missed, answer=Answer(2.0, True, Tried(4.0, "FAIL"))) == 0
    assert code(kept, missed, answer=Answer(2.0, False, Tried(4.0, "FAIL"))) == 3
    assert code(missed, answer=Answer(None, False, Tried(1.0, "FAIL"))) == 5


def test_options_change_a_workload_and_nothing_of_it_else() -> None:
    load, level = chosen(DATA, "article-2p1d", "", concurrency="4, 8", rate=0.0)
    assert (load.concurrency, load.request_rate, level and level.name) == ((4, 8), 24.0, "article")
    assert start_of("concurrency", load) == 4.0
    assert start_of("rate", load) == 24.0
    assert axis_of("", load, None) is None
    assert axis_of("rate", load, level) == "rate"


@pytest.mark.parametrize("given", ["0", "four", "4;8", "-1", "1.5"])
def test_concurrency_is_whole_numbers(given: str) -> None:
    with pytest.raises(InputError, match="no list of requests at once"):
        numbers(given)


def test_a_search_needs_an_axis_and_a_level() -> None:
    load, level = chosen(DATA, "smoke", "", concurrency="", rate=0.0)
    with pytest.raises(InputError, match="nothing to search"):
        axis_of("prompts", load, KEPT)
    with pytest.raises(InputError, match="no service level that a load could keep"):
        axis_of("rate", load, level)


def test_everything_shipped_is_listed() -> None:
    lines = [line for _, _, line in listed(DATA)]
    assert any(line.startswith("article-2p1d        3400 + 140") for line in lines)
    assert "ttft_ms mean ≤ 3000, prefill_tokens_per_s_per_gpu ≥ 2000" in lines[-1]
