"""What `check` and `up --despite` say without a host: lists, one check whole, and what they do not know."""

from __future__ import annotations

import pytest

from launcher.checks.judge import holds
from launcher.flows.check import all_checks
from launcher.flows.preflight import Report, refusals, waived_checks
from launcher.model.check import Check, CheckFinding, Expectation
from launcher.model.problem import InputError, LauncherError
from launcher.model.run import Event

CHECKS = {check.id: check for check in all_checks()}


def red(check: Check) -> CheckFinding:
    return CheckFinding(check, "wrong", ("gpu03",), "7, expected 8", check.remedy)


def test_despite_takes_what_up_refuses_with_and_a_reason() -> None:
    assert waived_checks("gpu-count, xids", "a new board", None) == {"gpu-count", "xids"}
    for words, why in (("gpu-count", " "), ("ecc-mode", "it is meant"), ("nothing", "it is meant")):
        with pytest.raises(InputError):
            waived_checks(words, why, None)


def test_up_ends_with_what_is_red_and_writes_down_what_is_meant() -> None:
    told: list[Event] = []
    count, xids = red(CHECKS["gpu-count"]), red(CHECKS["xids"])
    with pytest.raises(LauncherError) as refused:
        Report(ignored=(xids,), refusals=[LauncherError(*refusals([count]))]).refuse(told.append)
    (problem,) = refused.value.problems
    assert (problem.what, problem.where) == ("GPUs: 7, expected 8", "gpu03")
    assert "--despite gpu-count -m WHY" in problem.do
    assert told == []
    Report(ignored=(count, xids)).refuse(told.append)
    assert [e.subject for e in told] == ["gpu-count", "xids"]


@pytest.mark.parametrize(
    ("expect", "right", "wrong"),
    [
        (Expectation(release_at_least="6.9"), "6.10.0-1-generic", "6.8.0"),
        (Expectation(release_at_least="580"), "580.95.05", "no version"),
        (Expectation(at_least="32"), "32.0", "n/a"),
        (Expectation(at_most="0.05"), "0.0001", "0.31"),
        (Expectation(lacks="^tmpfs$"), "xfs", "tmpfs"),
        (Expectation(one_of=("a", "")), "", "b"),
    ],
)
def test_an_expectation_of_one_value(expect: Expectation, right: str, wrong: str) -> None:
    assert holds(right, expect)
    assert not holds(wrong, expect)
