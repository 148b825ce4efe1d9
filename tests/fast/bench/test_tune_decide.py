"""Two trials to one decision: better, worse, a tie, noise, a lost level, no start, no figure."""

from __future__ import annotations

import pytest

from launcher.bench.decide import decide
from launcher.model.bench import Verdict
from launcher.model.tune import FigureName, Trial

TOKENS: FigureName = "tokens_per_s_per_gpu"
KEPT: dict[str, Verdict] = {"ttft_ms mean": "PASS"}
MISSED: dict[str, Verdict] = {"ttft_ms mean": "FAIL"}
UNSURE: dict[str, Verdict] = {"ttft_ms mean": "CANNOT TELL"}


def trial(
    *tokens: float,
    ttft_ms: float = 2000,
    at_once: int = 16,
    limits: dict[str, Verdict] | None = None,
    **more: object,
) -> Trial:
    """Runs of so many tokens a second a GPU."""
    figures: dict[FigureName, tuple[float, ...]] = {TOKENS: tokens, "ttft_ms": (ttft_ms,)} if tokens else {}
    return Trial(figures, at_once, limits or {}, **more)  # type: ignore[arg-type]


BEFORE = trial(1000, limits=KEPT)


@pytest.mark.parametrize(
    ("after", "outcome", "reason"),
    [
        (trial(1100, limits=KEPT), "kept", "1,000.0 → 1,100.0 (+10.0%), noise 2.0%"),
        (trial(1021, limits=KEPT), "kept", "+2.1%"),
        (trial(1020, limits=KEPT), "reverted", "no better than noise"),
        (trial(1000, limits=KEPT), "reverted", "no better than noise"),
        (trial(900, limits=KEPT), "reverted", "worse"),
        (trial(1050, 1100, 1300, limits=KEPT), "reverted", "noise 23.9%"),
        (trial(1099, 1100, 1101, limits=KEPT), "kept", "noise 2.0%"),
        (trial(2000, limits=MISSED), "reverted", "the service level is lost: ttft_ms mean"),
        (trial(2000, limits=UNSURE), "undecided", "cannot be told: ttft_ms mean"),
        (trial(2000, doubts=("4 of 64 requests failed",)), "undecided", "4 of 64 requests failed"),
        (Trial(failed="decode-0 ended"), "reverted", "it did not come up: decode-0 ended"),
        (Trial(), "undecided", "no figure on record"),
        (Trial(known_from="the article, 5"), "undecided", "the article, 5"),
        (Trial(word="better", known_from="the article, 5"), "kept", "by its word alone"),
        (Trial(word="worse", known_from="the article, 5"), "reverted", "by its word alone"),
    ],
)
def test_a_step_is_kept_where_it_is_better_by_more_than_noise(
    after: Trial, outcome: str, reason: str
) -> None:
    found = decide(BEFORE, after, TOKENS, noise=0.02)
    assert found.outcome == outcome
    assert reason in found.reason


def test_of_times_less_is_better() -> None:
    faster, slower = trial(1000, ttft_ms=1500), trial(1000, ttft_ms=2500)
    assert decide(BEFORE, faster, "ttft_ms", noise=0.02).outcome == "kept"
    assert decide(BEFORE, slower, "ttft_ms", noise=0.02).outcome == "reverted"


def test_what_was_missed_before_may_be_missed_on_the_way() -> None:
    """A level that nothing keeps yet is no reason to stay: the way to it may take several steps."""
    found = decide(trial(1000, limits=MISSED), trial(1500, limits=MISSED), TOKENS, noise=0.02)  # type: ignore[arg-type]
    assert found.outcome == "kept"
    assert "still missed: ttft_ms mean" in found.reason


def test_nothing_is_better_than_what_is_not_known() -> None:
    assert decide(Trial(), trial(1000), TOKENS, noise=0.02).outcome == "undecided"
    assert decide(BEFORE, trial(1000), "tpot_ms", noise=0.02).outcome == "undecided"


@pytest.mark.parametrize(
    ("after", "outcome"),
    [
        (trial(1005, at_once=32, limits=KEPT), "kept"),
        (trial(985, at_once=32, limits=KEPT), "kept"),
        (trial(900, at_once=32, limits=KEPT), "reverted"),
        (trial(1500, at_once=16, limits=KEPT), "reverted"),
        (trial(1500, at_once=32, limits=MISSED), "reverted"),
        (trial(1500, at_once=32), "undecided"),
    ],
)
def test_more_requests_at_once_count_where_a_gpu_does_as_much(after: Trial, outcome: str) -> None:
    assert decide(BEFORE, after, "requests_at_once", noise=0.02).outcome == outcome
