"""Two trials → whether what changed between them is kept, and why; knows neither hosts nor files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from launcher.bench.figures import Apart, spread_of
from launcher.model.tune import FigureName, Outcome, Trial


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one step."""

    outcome: Outcome
    reason: str


def decide(before: Trial, after: Trial, figure: FigureName, *, noise: float) -> Verdict:
    """Kept: better by more than noise, and nothing of the service level lost that was kept before.

    A tie is reverted, for the simpler layout is the one that is there. What cannot be told is undecided, and
    not kept.
    """
    if after.failed:
        return Verdict("reverted", f"it did not come up: {after.failed}")
    if not after.figures:
        return _by_word(after)
    if not before.figures:
        return Verdict("undecided", "there is no figure of what it is to be better than")
    if doubts := (*before.doubts, *after.doubts):
        return Verdict("undecided", f"the figures cannot be trusted: {doubts[0]}")
    if lost := next(_lost(before, after), ""):
        return Verdict("reverted", f"the service level is lost: {lost}")
    if unsure := next(_unsure(before, after), ""):
        return Verdict("undecided", f"whether the service level is kept cannot be told: {unsure}")
    if figure == "requests_at_once":
        return _more_at_once(before, after, noise=noise)
    return _by_figure(before, after, figure, noise=noise)


def apart(before: Trial, after: Trial, figure: FigureName) -> Apart | None:
    """A figure of both; None where one of them has it not."""
    if not (before.figures.get(figure) and after.figures.get(figure)):
        return None
    return Apart(figure, spread_of(before.figures[figure]), spread_of(after.figures[figure]))


def _by_word(after: Trial) -> Verdict:
    told = f"its source ({after.known_from}) gives no figure"
    if after.word is None:
        return Verdict("undecided", f"there is no figure on record: {told}" if after.known_from else NONE)
    outcome: Outcome = "kept" if after.word == "better" else "reverted"
    return Verdict(outcome, f"{told}, and says that it is {after.word}; by its word alone")


NONE = "there is no figure on record"


def _by_figure(before: Trial, after: Trial, figure: FigureName, *, noise: float) -> Verdict:
    found = apart(before, after, figure)
    if found is None:
        return Verdict("undecided", f"there is no {figure} of both")
    told, word = f"{found}, noise {found.within(noise):.1%}{_missed(after)}", found.word(noise)
    if word == "better":
        return Verdict("kept", told)
    return Verdict("reverted", f"{word or 'no better than noise'}: {told}")


def _more_at_once(before: Trial, after: Trial, *, noise: float) -> Verdict:
    """More requests at once keep the service level, and a GPU does not do less for it."""
    told = f"{after.requests_at_once} requests at once instead of {before.requests_at_once}"
    if missed := [limit for limit, verdict in after.limits.items() if verdict == "FAIL"]:
        return Verdict("reverted", f"{told}, but {missed[0]} is missed")
    if not after.limits:
        return Verdict("undecided", f"{told}, and no service level to hold them against")
    found = apart(before, after, "tokens_per_s_per_gpu")
    if found is None:
        return Verdict("undecided", "there is no tokens_per_s_per_gpu of both")
    each = f"a GPU: {found}, noise {found.within(noise):.1%}"
    if found.word(noise) == "worse":
        return Verdict("reverted", f"{told}, but worse by {each}")
    if after.requests_at_once <= before.requests_at_once:
        return Verdict("reverted", f"no more: {told}")
    return Verdict("kept", f"{told} keep the service level; {each}")


def _missed(after: Trial) -> str:
    missed = [limit for limit, verdict in after.limits.items() if verdict == "FAIL"]
    return f"; still missed: {', '.join(missed)}" if missed else ""


def _lost(before: Trial, after: Trial) -> Iterator[str]:
    return (n for n, v in after.limits.items() if v == "FAIL" and before.limits.get(n) == "PASS")


def _unsure(before: Trial, after: Trial) -> Iterator[str]:
    return (n for n, v in after.limits.items() if v == "CANNOT TELL" and before.limits.get(n) == "PASS")
