"""FakeClock: time that passes only while somebody sleeps."""

from __future__ import annotations

from launcher.wait import Clock


class FakeClock(Clock):
    """Begins at 0; `slept` are the pauses so far."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.slept: list[float] = []

    def now_s(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds
