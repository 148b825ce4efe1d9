"""Figures are the client's to the digit; a verdict is given where they carry one, and withheld where not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from bench_records import IDLE, LOAD, METHOD, POINT, document, recorded, sla, target

from launcher.bench.measure import DEFINITIONS, figure, in_flight, rates, time_ms
from launcher.bench.verdict import judge, least_samples, long_enough
from launcher.model.bench import Measured, Point, Result
from launcher.model.sla import Limit

TTFT = Limit(at_most=6000.0)
MISSED = Limit(at_most=5000.0)


def judged(*results: Result, point: Point = POINT, **limits: Limit) -> Measured:
    return judge(LOAD, sla(**limits), METHOD, target=target(), point=point, results=results)


def test_figures_are_those_of_the_client_to_the_digit() -> None:
    told, result = document("disaggregated"), recorded()
    assert time_ms(result, "ttft_ms", "mean") == told["mean_ttft_ms"]
    assert time_ms(result, "tpot_ms", "p99") == told["p99_tpot_ms"]
    assert figure(result, target(), "tokens_per_s", "mean") == told["total_token_throughput"]
    assert result.completed == told["completed"] == 64


def test_tokens_a_second_name_what_they_are_divided_by() -> None:
    told = document("disaggregated")
    prefill, decode = rates(recorded(), target(gpus=8))
    assert (prefill.value, prefill.tokens, prefill.over) == (
        told["total_token_throughput"] / 8,
        "tokens",
        "prefill GPU, of 8",
    )
    assert (decode.value, decode.over) == (told["output_throughput"] / 8, "decode GPU, of 8")
    without, _ = rates(recorded(), target(gpus=0))
    assert (without.value, without.over) == (
        told["total_token_throughput"],
        "prefill instance, of 1; no GPUs",
    )


def test_answers_of_one_token_have_no_time_per_token() -> None:
    """The client writes 0.0 there, which would keep any limit."""
    alone = recorded("prefill")
    assert alone.figures["mean_tpot_ms"] == 0.0
    assert time_ms(alone, "tpot_ms", "mean") is None
    (limit,) = judged(alone, point=Point(96, 16), tpot_ms=Limit(at_most=1.0)).judgements
    assert (limit.verdict, limit.why) == ("CANNOT TELL", "the answers are one token long")


def test_requests_in_flight_are_far_below_the_maximum_that_the_client_tells() -> None:
    """Its maximum counts whole seconds: 32 where 16 was the bound."""
    result = recorded(mean_e2el_ms=5800.0)
    assert result.figures["max_concurrent_requests"] == 32
    assert in_flight(result) == pytest.approx(15.27, abs=0.01)


def test_a_limit_is_kept_or_missed_with_its_margin() -> None:
    kept = judged(recorded(), ttft_ms=TTFT)
    missed = judged(recorded(), ttft_ms=MISSED, tokens_per_s=Limit(at_least=10_000.0))
    assert (kept.verdict, missed.verdict) == ("PASS", "FAIL")
    assert kept.judgements[0].margin == pytest.approx(0.1397, abs=1e-4)
    assert [(j.limit, j.verdict) for j in missed.judgements] == [
        ("ttft_ms", "FAIL"),
        ("tokens_per_s", "PASS"),
    ]
    assert missed.judgements[0].margin == pytest.approx(-0.0324, abs=1e-4)


def test_all_runs_must_agree() -> None:
    runs = [recorded(mean_ttft_ms=ms) for ms in (2900.0, 2950.0, 3100.0)]
    (limit,) = judged(*runs, ttft_ms=Limit(at_most=3000.0)).judgements
    assert (limit.verdict, limit.why) == ("CANNOT TELL", "2 of 3 runs keep it")
    assert (limit.value, limit.spread, limit.samples) == (2950.0, 100.0, (64, 64, 64))


@pytest.mark.parametrize(
    ("what", "doubt"),
    [
        # the client ends with status 0 and a throughput of 0.00 where nothing serves yet
        ({"completed": 0}, "64 of 64 requests failed"),
        ({"completed": 61}, "3 of 64 requests failed"),
        ({"cpu_percent": 97.0}, "the client itself was the bottleneck: it took 97 % of a core"),
        ({"counters": {**IDLE, "prefix_hits": 104857.6}}, "prefix caches of prefill answered 40%"),
        (
            {"counters": {**IDLE, "prompt_tokens": 521024.0, "queued": 64.0}},
            "prompts of 8141 tokens arrived at prefill, where 4096 were asked for",
        ),
    ],
)
def test_doubtful_figures_get_no_verdict(what: Mapping[str, Any], doubt: str) -> None:
    measured = judged(recorded(**what), ttft_ms=TTFT)
    assert [d.startswith(doubt) for d in measured.doubts] == [True], measured.doubts
    assert (measured.verdict, measured.judgements[0].verdict) == ("CANNOT TELL", "CANNOT TELL")


def test_who_could_not_be_asked_or_started_anew_makes_doubt() -> None:
    broken = replace(recorded(), silent=("decode-0",), restarted=("prefill-0",))
    assert judged(broken).doubts == (
        "the counters of decode-0 could not be read",
        "prefill-0 started anew meanwhile",
    )


# 64 requests at 8 a second are sent within 8 s: the recorded 24.3 s are too long, whoever held them up
@pytest.mark.parametrize(
    ("in_flight_s", "queue_s", "doubt"),
    [
        (0.5, 0.0, "the client itself was the bottleneck: 2.69 of 8 requests/s got through, and no engine"),
        (0.5, 300.0, "saturated: 2.69 of 8 requests/s got through, requests waited: prefill 4.7 s"),
        (5.9, 300.0, "saturated: 3.48 of 8 requests/s got through, for 16 of 16 were under way"),
    ],
)
def test_a_rate_that_did_not_get_through_is_somebodys_fault(
    in_flight_s: float, queue_s: float, doubt: str
) -> None:
    counters = {**IDLE, "queue_seconds": queue_s, "queued": 64.0}
    result = recorded(counters=counters, mean_e2el_ms=in_flight_s * 1000)
    measured = judged(result, point=Point(64, 16, rate=8.0), ttft_ms=TTFT)
    assert measured.verdict == "CANNOT TELL"
    assert measured.doubts[0].startswith(doubt), measured.doubts
    assert not judged(result, point=Point(64, 16, rate=2.5), ttft_ms=TTFT).doubts


def test_percentiles_take_more_requests_than_means() -> None:
    assert [least_samples(of, METHOD) for of in ("mean", "p50", "p90", "p95", "p99")] == [
        10,
        10,
        50,
        100,
        500,
    ]
    tail = Limit(at_most=20_000.0, of="p99")
    (limit,) = judged(recorded(), ttft_ms=tail).judgements
    assert (limit.verdict, limit.why) == ("CANNOT TELL", "too few samples: a p99 takes 500 requests a run")
    assert long_enough(LOAD, sla(ttft_ms=tail), METHOD).prompts == 500, "a search sends them"
    assert long_enough(LOAD, sla(ttft_ms=TTFT), METHOD) == LOAD


def test_no_gpu_is_no_tokens_per_gpu() -> None:
    limits: dict[str, Any] = {"prefill_tokens_per_s_per_gpu": Limit(at_least=1.0)}
    measured = judge(LOAD, sla(**limits), METHOD, target=target(gpus=0), point=POINT, results=[recorded()])
    assert measured.judgements[0].why == "service has no prefill GPU"
    assert judged(recorded(), **limits).verdict == "PASS"


def test_what_takes_nothing_away_is_noted() -> None:
    counters = {**IDLE, "preemptions": 3.0, "kv_failed": 1.0, "draft_tokens": 100.0, "accepted_tokens": 12.0}
    measured = judged(recorded(counters=counters), ttft_ms=TTFT)
    assert measured.verdict == "PASS"
    assert [note.partition(":")[0].partition(";")[0] for note in measured.notes] == [
        "prefill preempted requests 3 times",
        "1 KV transfers to prefill failed",
        "prefill accepted 12% of drafted tokens",
    ]


def test_each_word_of_the_table_is_defined() -> None:
    for word in ("TTFT", "TPOT", "ITL", "E2E", "tok/s", "in flight", "goodput", "n:", "±"):
        assert word in DEFINITIONS
