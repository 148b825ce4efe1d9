"""The load of drills: what counts as an answer, and which failures belong to a fault."""

from __future__ import annotations

import json

import pytest

from launcher.health.steady import Planted, Told, Verdict, count, streamed_text, whole_body, whole_text

WORDS = ("ok", "in_flight", "outage", "after", "hung", "wrong", "other")


def event(text: str) -> str:
    return "data: " + json.dumps({"choices": [{"text": text}]})


def test_a_streamed_answer_is_whole_with_its_end_alone() -> None:
    lines = [event("a"), "", event("b"), "", "data: [DONE]", ""]
    assert streamed_text(lines) == "ab"
    assert streamed_text(lines[:3]) is None
    assert streamed_text([*lines[:2], "data: {broken", "data: [DONE]"]) is None


def test_an_answer_at_once_is_whole_with_its_usage() -> None:
    told = {"choices": [{"text": "ab"}], "usage": {"completion_tokens": 2}}
    assert whole_text([json.dumps(told)]) == "ab"
    assert whole_text([json.dumps({"choices": [{"text": "ab"}]})]) is None
    assert whole_text([json.dumps(told)[:-5]]) is None
    assert whole_text([]) is None


def test_chunks_are_put_together_as_far_as_they_came() -> None:
    assert whole_body(b"3\r\nabc\r\n2;x=1\r\nde\r\n0\r\n\r\n") == b"abcde"
    assert whole_body(b"3\r\nabc\r\n9\r\nde") == b"abcde"


@pytest.mark.parametrize(
    ("began_s", "ended_s", "verdict", "where"),
    [
        (9.0, 11.0, "failed", "in_flight"),
        (10.1, 11.0, "failed", "in_flight"),  # it began while the fault was being planted
        (12.0, 12.1, "failed", "outage"),
        (21.0, 21.1, "failed", "after"),
        (12.0, 72.0, "hung", "hung"),
        (12.0, 13.0, "wrong", "wrong"),
        (12.0, 13.0, "other", "other"),
        (12.0, 13.0, "ok", "ok"),
    ],
)
def test_each_request_counts_once(began_s: float, ended_s: float, verdict: Verdict, where: str) -> None:
    told = [Told(began_s, ended_s, False, verdict)]
    counted = count(told, Planted(10.0, 10.2, safe=0), 20.0)
    found = {word: getattr(counted, word) for word in WORDS}
    assert {word for word, number in found.items() if number} == {where}
    assert counted.open == (1 if began_s <= 10.2 else 0)
