"""The search finds the highest load that holds, in few points, and does not trust a lucky one."""

from __future__ import annotations

from collections.abc import Callable

from bench_records import METHOD
from hypothesis import given
from hypothesis import strategies as st

from launcher.bench.search import Answer, Ask, Tried, decide
from launcher.model.bench import Axis, Verdict


def searched(axis: Axis, start: float, measure: Callable[[Ask], Verdict]) -> tuple[Answer, list[Tried]]:
    """A whole search over a service that answers like `measure`."""
    tried: list[Tried] = []
    while isinstance(step := decide(tried, axis, start=start, method=METHOD), Ask):
        tried.append(Tried(step.value, measure(step), step.confirms))
        assert len(tried) <= METHOD.search_points
    return step, tried


def up_to(most: float) -> Callable[[Ask], Verdict]:
    """A service that keeps its level up to a load."""
    return lambda asked: "PASS" if asked.value <= most else "FAIL"


@given(st.integers(1, 400), st.integers(1, 64))
def test_the_highest_concurrency_is_found(most: int, start: int) -> None:
    answer, tried = searched("concurrency", start, up_to(most))
    assert answer.confirmed
    assert answer.highest is not None
    assert answer.highest <= most, "what was found holds"
    assert answer.next_up is not None
    assert answer.next_up.value > most
    near = answer.next_up.value <= max(answer.highest + 1, answer.highest * (1 + METHOD.search_within))
    assert near or len(tried) == METHOD.search_points
    assert all(t.value == int(t.value) for t in tried)


@given(st.floats(0.3, 200), st.floats(0.5, 4))
def test_the_highest_rate_is_found_within_its_share(most: float, start: float) -> None:
    answer, tried = searched("rate", start, up_to(most))
    assert answer.highest is not None
    assert answer.next_up is not None
    assert answer.highest <= most < answer.next_up.value
    assert answer.confirmed
    near = answer.next_up.value <= answer.highest * (1 + METHOD.search_within) * (1 + 1e-9)
    assert near or len(tried) == METHOD.search_points


@given(st.lists(st.sampled_from(["PASS", "FAIL", "CANNOT TELL"]), min_size=20, max_size=20))
def test_whatever_is_measured_it_ends_and_claims_no_more_than_was_seen(verdicts: list[Verdict]) -> None:
    answers = iter(verdicts)
    answer, tried = searched("concurrency", 4, lambda _: next(answers))
    failed = [t.value for t in tried if t.verdict != "PASS"]
    if answer.highest is not None:
        assert any(t.value == answer.highest and t.verdict == "PASS" for t in tried)
        assert all(answer.highest < value for value in failed), "nothing failed at or below it"
    if answer.confirmed:
        assert any(t.confirms and t.value == answer.highest and t.verdict == "PASS" for t in tried)


def test_a_value_that_the_longer_run_misses_is_not_the_answer() -> None:
    def measure(asked: Ask) -> Verdict:
        return "PASS" if asked.value <= (12 if asked.confirms else 16) else "FAIL"

    answer, tried = searched("concurrency", 4, measure)
    assert (answer.highest, answer.confirmed, answer.next_up) == (12, True, Tried(13, "FAIL", confirms=True))
    first = next(i for i, t in enumerate(tried) if t.confirms)
    assert all(t.confirms for t in tried[first:]), "short runs were wrong once"


def test_where_nothing_holds_it_says_so() -> None:
    answer, tried = searched("concurrency", 8, lambda _: "FAIL")
    assert (answer.highest, answer.confirmed) == (None, False)
    assert [t.value for t in tried] == [8, 4, 2, 1]
