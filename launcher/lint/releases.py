"""What holds from one release to another, and what where the release is not known; knows no setting."""

from __future__ import annotations

from collections.abc import Mapping

from launcher.lint.values import Truth, untold
from launcher.model.facts import Unknown
from launcher.model.history import release, value_in

THE_RELEASE = "the release of vLLM"


def within(version: str, since: str, until: str) -> Truth:
    """Is a release one of those from `since` on, up to but without `until`? Empty bounds are none."""
    if not since and not until:
        return True
    if not version:
        return Unknown(f"{THE_RELEASE}: {span(since, until)}")
    at = release(version)
    return release(since) <= at and not (until and release(until) <= at)


def value_at(values: Mapping[str, str], version: str) -> str | None:
    """What holds in a release, of `release → what holds from there on`; None before the first.

    Where the release is unknown and not all values are alike, raises UntoldError.
    """
    if not version:
        if len(set(values.values())) > 1:
            raise untold(THE_RELEASE)
        return next(iter(values.values()), None)
    return value_in(values, version)


def span(since: str, until: str) -> str:
    """`0.13.0 or newer`, `older than 0.25.0`, or both; `any` for no bounds."""
    words = [f"{since} or newer" if since else "", f"older than {until}" if until else ""]
    return " and ".join(filter(None, words)) or "any"
