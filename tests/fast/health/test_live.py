"""live: tokens a second and times out of two looks, and what cannot be compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from launcher.cli.statustext import live_lines
from launcher.flows.status import Status
from launcher.health.live import Live, live
from launcher.health.state import ProcessState, RankLoad

POOLS = {"prefill-0": "prefill", "decode-0": "decode"}
RANK = RankLoad("0", 2, 1, 0.25, 1000, 100, 0, ttft_seconds=10, ttft_count=5, tpot_seconds=1, tpot_count=20)
GROWN = replace(
    RANK,
    prompt_tokens=1600,
    generation_tokens=150,
    ttft_seconds=13,
    ttft_count=8,
    tpot_seconds=1.2,
    tpot_count=24,
)


def process(instance: str, *ranks: RankLoad, host: str = "h01", start: str = "1") -> ProcessState:
    """One that runs."""
    return ProcessState(instance, host, "u", "active", 1, {}, True, ranks, invocation=start)


def numbers(before: list[ProcessState], now: list[ProcessState]) -> dict[str, Live]:
    """By name, of looks two seconds apart."""
    return {each.name: each for each in live(before, now, pools=POOLS, elapsed_s=2)}


def test_rates_are_of_what_grew_in_between() -> None:
    second = replace(RANK, rank="1", kv_usage=0.5)
    before = [process("prefill-0", RANK), process("decode-0", RANK, second, host="h02")]
    found = numbers(before, [process("prefill-0", GROWN), process("decode-0", GROWN, second, host="h02")])
    assert list(found) == ["prefill", "prefill-0", "decode", "decode-0"]
    assert found["prefill-0"].prompt_tokens_per_s == 300
    assert found["decode"].generation_tokens_per_s == 25
    assert found["decode"].ttft_s == 1
    assert found["decode"].tpot_s == pytest.approx(0.05)
    assert (found["decode"].running, found["decode"].waiting, found["decode"].kv_usage) == (4, 2, 0.5)


def test_what_was_started_anew_has_no_rates() -> None:
    before = [process("prefill-0", GROWN), process("decode-0", RANK, host="h02")]
    for again in (process("prefill-0", RANK, start="2"), process("prefill-0", RANK), process("prefill-0")):
        found = numbers(before, [again, process("decode-0", GROWN, host="h02")])
        assert found["prefill"].prompt_tokens_per_s is None
        assert found["prefill"].ttft_s is None
        assert found["decode"].generation_tokens_per_s == 25


def test_where_nothing_comes_there_are_no_times() -> None:
    found = numbers([process("prefill-0", RANK)], [process("prefill-0", RANK)])["prefill-0"]
    assert (found.prompt_tokens_per_s, found.ttft_s, found.tpot_s) == (0, None, None)


def test_one_look_shows_no_rates() -> None:
    one = tuple(live([], [process("prefill-0", RANK)], pools=POOLS, elapsed_s=0))
    assert list(live_lines(Status("c", (), (), live=one))) == []
    two = tuple(live([process("prefill-0", RANK)], [process("prefill-0", GROWN)], pools=POOLS, elapsed_s=2))
    head, pool, *_ = live_lines(Status("c", (), (), live=two))
    assert head.split() == [
        "live",
        "P",
        "tok/s",
        "D",
        "tok/s",
        "TTFT",
        "TPOT",
        "KV",
        "use",
        "running",
        "waiting",
    ]
    assert pool.split() == ["prefill", "300.0", "25.0", "1,000", "ms", "50", "ms", "25%", "2", "1"]
