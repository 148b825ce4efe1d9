"""Hold: a person keeps a fleet for himself, written down on every host; knows not how hosts are asked."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.problem import Problem

PATH = "/etc/dsv32/hold.json"
HOLD = Probe("read", (PATH, 4096))
"""What tells whether a host is held; asked beside other questions, so that it costs no request."""

TIME = "%Y-%m-%dT%H:%M:%SZ"
"""How moments are written in it: UTC, so that texts sort as they do."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Who holds a host, and why: nobody else's run changes it."""

    who: str
    where_from: str
    """The controller's name."""
    since: str
    why: str
    until: str = ""
    """Empty: until it is given up."""

    def is_over(self, now: str) -> bool:
        """Its time has passed."""
        return bool(self.until) and self.until <= now

    def keeps_out(self, who: str, now: str) -> bool:
        """That person may change nothing now."""
        return who != self.who and not self.is_over(now)

    def __str__(self) -> str:
        until = f" until {self.until}" if self.until else ""
        return f"held by {self.who} on {self.where_from} since {self.since}{until}: {self.why}"

    def problem(self, host: str) -> Problem:
        """What keeps somebody else's run from that host."""
        return Problem(
            str(self),
            host,
            "a hold is there so that nobody else changes hosts meanwhile; its holder's own runs go on",
            f"ask {self.who}, or take it away: dsv32-launch unlock --force -m WHY",
        )


def hold_text(hold: Hold) -> str:
    """The file's content."""
    return json.dumps(asdict(hold), indent=1) + "\n"


def hold_in(answer: Any) -> Hold | None:
    """The hold in an answer to HOLD. A file that nobody can read holds, too: somebody put it there."""
    if isinstance(answer, Unknown) or "text" not in answer:
        return None
    try:
        told = json.loads(answer["text"])
        return Hold(**{str(key): str(value) for key, value in told.items()})
    except (ValueError, TypeError, AttributeError):
        return Hold("somebody", "some controller", "some time", f"{PATH} is not what `lock` writes")


def holds_in(answers: Iterable[Facts | Problem], now: str) -> tuple[Hold, ...]:
    """Each different hold of some hosts that is not over, once."""
    found = (hold_in(a[HOLD]) for a in answers if isinstance(a, Facts))
    return tuple(dict.fromkeys(hold for hold in found if hold and not hold.is_over(now)))
