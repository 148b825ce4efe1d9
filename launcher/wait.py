"""Wait: ask a question again until its answer satisfies, its time is over, or the user interrupts.

Every loop of the controller that looks again is one of these, so that tests give all of them another clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    retry_if_result,
    stop_after_attempt,
    wait_random_exponential,
)

T = TypeVar("T")


class Clock:
    """The time of this machine, which only rises; a test's clock overrides both methods."""

    def now_s(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Return when so many seconds have passed."""
        time.sleep(seconds)


CLOCK = Clock()


class End(Enum):
    """Why a wait ended."""

    SATISFIED = "satisfied"
    TIMED_OUT = "timed out"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Waited(Generic[T]):
    """How a wait ended."""

    answer: T
    """The last one."""
    end: End
    took_s: float
    """From before the first question until after the last answer."""

    @property
    def satisfied(self) -> bool:
        """Is the answer what was waited for?"""
        return self.end is End.SATISFIED


def never(_: object = None) -> bool:
    """No answer satisfies, or nobody interrupts."""
    return False


def wait_for(
    ask: Callable[[], T],
    until: Callable[[T], bool],
    *,
    every_s: float,
    within_s: float = math.inf,
    interrupted: Callable[[], bool] = never,
    on_change: Callable[[T], None] = lambda _: None,
    clock: Clock = CLOCK,
) -> Waited[T]:
    """Ask now and, `every_s` seconds after each answer, again, until one satisfies.

    It asks at least once, and for the last time when `within_s` seconds are over. After each answer that does
    not satisfy it looks whether the user has interrupted. `on_change` is told the first such answer, and each
    that differs from the one before. What `ask` raises ends the wait.
    """
    began_s, end = clock.now_s(), End.SATISFIED
    told: list[T] = []

    def left_s() -> float:
        return within_s - (clock.now_s() - began_s)

    def stop(_: RetryCallState) -> bool:
        """Asked after each answer that does not satisfy."""
        nonlocal end
        if left_s() <= 0:
            end = End.TIMED_OUT
        elif interrupted():
            end = End.INTERRUPTED
        return end is not End.SATISFIED

    def tell(state: RetryCallState) -> None:
        answer = answer_in(state)
        if told != [answer]:
            told[:] = [answer]
            on_change(answer)

    def answer_in(state: RetryCallState) -> T:
        assert state.outcome, "it was asked"
        answer: T = state.outcome.result()
        return answer

    again = Retrying(
        retry=retry_if_result(lambda answer: not until(answer)),
        stop=stop,
        wait=lambda _: max(0.0, min(every_s, left_s())),
        sleep=clock.sleep,
        before_sleep=tell,
        retry_error_callback=answer_in,
    )
    answer = again(ask)
    return Waited(answer, end, clock.now_s() - began_s)


def looks(every_s: float, clock: Clock = CLOCK) -> Iterator[None]:
    """One item now and one after each `every_s` seconds, without end: `for _ in looks(5.0): show(ask())`."""
    while True:
        yield
        clock.sleep(every_s)


def try_again(work: Callable[[], T], *, on: type[Exception], attempts: int, clock: Clock = CLOCK) -> T:
    """What `work` returns; where it raises `on` it is done again, after a random time that doubles up to 3 s.

    The last attempt raises what it raises.
    """
    again = Retrying(
        retry=retry_if_exception_type(on),
        stop=stop_after_attempt(attempts),
        wait=wait_random_exponential(multiplier=0.2, max=3),
        sleep=clock.sleep,
        reraise=True,
    )
    return again(work)
