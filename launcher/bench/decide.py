"""Two trials → whether what changed between them is kept, and why; knows neither hosts nor files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median_low

from launcher.model.tune import FigureName, Outcome, Trial

SMALLER: frozenset[FigureName] = frozenset({"ttft_ms", "tpot_ms"})
"""Of these, less is better."""


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


def gain(before: Trial, after: Trial, figure: FigureName) -> float | None:
    """By which share a figure is better; None where one of both has it not. Medians of the runs."""
    if not (before.figures.get(figure) and after.figures.get(figure)):
        return None
    old, new = median_low(before.figures[figure]), median_low(after.figures[figure])
    return (old - new) / old if figure in SMALLER else (new - old) / old


def margin(before: Trial, after: Trial, figure: FigureName, noise: float) -> float:
    """The share that counts as noise: what is given, or what lies within the runs of both."""
    half = sum((max(t.figures[figure]) - min(t.figures[figure])) / 2 for t in (before, after))
    return max(noise, half / median_low(before.figures[figure]))


def _by_word(after: Trial) -> Verdict:
    told = f"its source ({after.known_from}) gives no figure"
    if after.word is None:
        return Verdict("undecided", f"there is no figure on record: {told}" if after.known_from else NONE)
    outcome: Outcome = "kept" if after.word == "better" else "reverted"
    return Verdict(outcome, f"{told}, and says that it is {after.word}; by its word alone")


NONE = "there is no figure on record"


def _by_figure(before: Trial, after: Trial, figure: FigureName, *, noise: float) -> Verdict:
    share = gain(before, after, figure)
    if share is None:
        return Verdict("undecided", f"there is no {figure} of both")
    within = margin(before, after, figure, noise)
    told = f"{_told(before, after, figure)}, noise {within:.1%}{_missed(after)}"
    if share > within:
        return Verdict("kept", told)
    return Verdict("reverted", f"{'worse' if share < -within else 'no better than noise'}: {told}")


def _more_at_once(before: Trial, after: Trial, *, noise: float) -> Verdict:
    """More requests at once keep the service level, and a GPU does not do less for it."""
    told = f"{after.requests_at_once} requests at once instead of {before.requests_at_once}"
    if missed := [limit for limit, verdict in after.limits.items() if verdict == "FAIL"]:
        return Verdict("reverted", f"{told}, but {missed[0]} is missed")
    if not after.limits:
        return Verdict("undecided", f"{told}, and no service level to hold them against")
    share = gain(before, after, "tokens_per_s_per_gpu")
    if share is None:
        return Verdict("undecided", "there is no tokens_per_s_per_gpu of both")
    within = margin(before, after, "tokens_per_s_per_gpu", noise)
    each = f"a GPU: {_told(before, after, 'tokens_per_s_per_gpu')}, noise {within:.1%}"
    if share < -within:
        return Verdict("reverted", f"{told}, but worse by {each}")
    if after.requests_at_once <= before.requests_at_once:
        return Verdict("reverted", f"no more: {told}")
    return Verdict("kept", f"{told} keep the service level; {each}")


def _told(before: Trial, after: Trial, figure: FigureName) -> str:
    old, new = median_low(before.figures[figure]), median_low(after.figures[figure])
    return f"{figure} {old:,.1f} → {new:,.1f} ({(new - old) / old:+.1%})"


def _missed(after: Trial) -> str:
    missed = [limit for limit, verdict in after.limits.items() if verdict == "FAIL"]
    return f"; still missed: {', '.join(missed)}" if missed else ""


def _lost(before: Trial, after: Trial) -> Iterator[str]:
    return (n for n, v in after.limits.items() if v == "FAIL" and before.limits.get(n) == "PASS")


def _unsure(before: Trial, after: Trial) -> Iterator[str]:
    return (n for n, v in after.limits.items() if v == "CANNOT TELL" and before.limits.get(n) == "PASS")
