"""A wait asks until it is satisfied, out of time or interrupted, and says which."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import pytest
from fake_clock import FakeClock

from launcher.wait import End, Waited, looks, never, try_again, wait_for


def counting(clock: FakeClock | None = None, *, takes_s: float = 0.0) -> Callable[[], int]:
    """1, 2, 3, …, each answer after `takes_s` of the clock."""
    asked = 0

    def ask() -> int:
        nonlocal asked
        asked += 1
        if clock:
            clock.seconds += takes_s
        return asked

    return ask


def test_it_asks_at_once_and_then_in_its_interval_until_the_answer_satisfies() -> None:
    clock = FakeClock()
    waited = wait_for(counting(), lambda n: n == 4, every_s=2.5, clock=clock)
    assert waited == Waited(4, End.SATISFIED, 7.5)
    assert waited.satisfied
    assert clock.slept == [2.5, 2.5, 2.5]


def test_a_first_answer_that_satisfies_costs_no_pause() -> None:
    clock = FakeClock()
    assert wait_for(counting(), lambda n: n == 1, every_s=2.5, within_s=0, clock=clock).satisfied
    assert clock.slept == []


def test_the_last_question_is_asked_when_the_time_is_over() -> None:
    clock = FakeClock()
    waited = wait_for(counting(), never, every_s=4.0, within_s=10.0, clock=clock)
    assert (waited.end, waited.satisfied) == (End.TIMED_OUT, False)
    assert clock.slept == [4.0, 4.0, 2.0]
    assert waited.answer == 4
    assert waited.took_s == 10.0


def test_an_answer_that_comes_too_late_counts_where_it_satisfies() -> None:
    clock = FakeClock()
    waited = wait_for(counting(clock, takes_s=30), lambda n: n == 1, every_s=1, within_s=10, clock=clock)
    assert waited == Waited(1, End.SATISFIED, 30.0)


def test_the_time_that_answers_take_counts() -> None:
    clock = FakeClock()
    waited = wait_for(counting(clock, takes_s=3), never, every_s=1, within_s=10, clock=clock)
    assert waited == Waited(3, End.TIMED_OUT, 11.0)
    assert clock.slept == [1, 1]


@pytest.mark.parametrize("within_s", [0, -1])
def test_without_any_time_it_asks_once(within_s: float) -> None:
    clock = FakeClock()
    assert wait_for(counting(), never, every_s=1, within_s=within_s, clock=clock).answer == 1
    assert clock.slept == []


def test_interrupted_it_asks_no_more() -> None:
    clock, ask = FakeClock(), counting()
    waited = wait_for(ask, never, every_s=1, interrupted=lambda: clock.seconds >= 2, clock=clock)
    assert waited == Waited(3, End.INTERRUPTED, 2.0)
    assert ask() == 4


def test_an_answer_that_satisfies_is_not_lost_to_an_interrupt() -> None:
    assert wait_for(counting(), lambda n: n == 1, every_s=1, interrupted=lambda: True).satisfied


def test_what_a_question_raises_ends_the_wait() -> None:
    clock = FakeClock()

    def ask() -> None:
        if clock.seconds:
            raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        wait_for(ask, never, every_s=1, clock=clock)
    assert clock.slept == [1]


def test_a_change_is_told_once() -> None:
    answers = iter(["a", "a", "b", "b", "a", "done"])
    told: list[str] = []
    wait_for(lambda: next(answers), "done".__eq__, every_s=1, on_change=told.append, clock=FakeClock())
    assert told == ["a", "b", "a"]


def test_looks_come_without_end_and_pause_in_between() -> None:
    clock = FakeClock()
    assert [clock.seconds for _ in islice(looks(5.0, clock), 3)] == [0.0, 5.0, 10.0]


def test_work_is_tried_again_only_where_it_raises_that() -> None:
    clock, ask = FakeClock(), counting()

    def work() -> int:
        if (n := ask()) < 3:
            raise TimeoutError
        return n

    assert try_again(work, on=TimeoutError, attempts=5, clock=clock) == 3
    assert len(clock.slept) == 2
    assert all(0 <= s <= 3 for s in clock.slept)


def test_the_last_attempt_raises_what_it_raises() -> None:
    clock = FakeClock()
    with pytest.raises(TimeoutError, match="late"):
        try_again(lambda: failing(TimeoutError("late")), on=TimeoutError, attempts=3, clock=clock)
    assert len(clock.slept) == 2
    with pytest.raises(LookupError):
        try_again(lambda: failing(LookupError()), on=TimeoutError, attempts=3, clock=clock)
    assert len(clock.slept) == 2


def failing(problem: Exception) -> None:
    raise problem
