"""Rounds and blame: each pair once, no host twice at a time; who is slow is named, and nobody else."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launcher.checks.blame import culprits, findings_of, together
from launcher.checks.figures import Told, figures_of
from launcher.checks.loadkept import compare, document, kept, read_back
from launcher.checks.rounds import rounds_of, tournament
from launcher.load.data import Data, shipped
from launcher.load.load_checks import read_load_checks
from launcher.model.load_check import End, Figure, Leg, LoadCheck, Meeting
from launcher.model.problem import InputError

CHECKS = {check.id: check for check in read_load_checks(Data((shipped(),)))}
WRITE, DISK, LATENCY = CHECKS["rdma-write"], CHECKS["disk-read"], CHECKS["deepep-low-latency"]
RAILS = ("mlx5_0", "mlx5_1", "mlx5_2")


def names(number: int) -> list[str]:
    return [f"gpu{n:02}" for n in range(1, number + 1)]


@given(st.integers(0, 40))
def test_each_pair_meets_once_and_no_host_is_in_two_pairs_of_a_round(number: int) -> None:
    hosts = names(number)
    rounds = tournament(hosts)
    assert sorted(pair for group in rounds for pair in group) == sorted(combinations(hosts, 2))
    for group in rounds:
        assert max(Counter(host for pair in group for host in pair).values()) == 1
    assert len(rounds) == (0 if number < 2 else number - 1 if number % 2 == 0 else number)


def test_hosts_by_themselves_in_turns_and_all_together() -> None:
    assert rounds_of("each", ["a", "b"]) == ((("a",), ("b",)),)
    assert rounds_of("turns", ["a", "b"]) == ((("a",),), (("b",),))
    assert rounds_of("all", ["a", "b"]) == ((("a", "b"),),)
    assert rounds_of("all", ["a"]) == rounds_of("each", []) == ()


def fleet(number: int) -> list[tuple[End, ...]]:
    """Every pair of so many hosts, on every rail."""
    return [(End(a, r), End(b, r)) for a, b in combinations(names(number), 2) for r in RAILS]


def slow_of(measured: list[tuple[End, ...]], hosts: set[str], ends: set[End]) -> list[int]:
    return [n for n, own in enumerate(measured) if any(e.host in hosts or e in ends for e in own)]


@given(st.data())
def test_whatever_hosts_and_rails_are_slow_they_are_named_and_nobody_else(data: st.DataObject) -> None:
    number = data.draw(st.integers(4, 9))
    hosts = names(number)
    # two good hosts at least: of one pair alone nobody can tell which of the two it is
    bad = data.draw(st.sets(st.sampled_from(hosts), max_size=number - 3))
    good = [host for host in hosts if host not in bad]
    rail, lame = data.draw(st.sampled_from(RAILS)), data.draw(st.sampled_from([*good, ""]))
    ends = {End(lame, rail)} if lame and len(good) > 2 else set()
    measured = fleet(number)
    slow = slow_of(measured, bad, ends)
    named = culprits(measured, slow)
    assert sorted(c.ends for c in named) == sorted([(End(h),) for h in bad] + [(e,) for e in ends])
    assert {place for c in named for place in c.measured} == set(slow)


def test_what_figures_do_not_tell_apart_is_named_as_a_whole() -> None:
    measured = fleet(4)
    everything = culprits(measured, range(len(measured)))
    assert [c.ends for c in everything] == [tuple(End(h) for h in names(4))]
    switch = slow_of(measured, set(), {End(h, "mlx5_1") for h in names(4)})
    assert [c.ends for c in culprits(measured, switch)] == [(End("", "mlx5_1"),)]
    assert [c.ends for c in culprits(measured, [0])] == [measured[0]]
    two = fleet(2)
    assert [c.ends for c in culprits(two, [1])] == [two[1]]
    assert culprits(measured, []) == ()


def test_many_pairs_with_nothing_in_common_are_told_as_one() -> None:
    measured = fleet(5)
    slow = [0, 4, 8, 9, 17, 19]
    single = culprits(measured, slow)
    assert [c.measured for c in single] == [(place,) for place in slow]
    assert together(single[:4]) == single[:4]
    (one,) = together(single)
    assert one.measured == tuple(slow)
    assert one.ends == tuple(sorted({End(end.host) for place in slow for end in measured[place]}))


def figures(check: LoadCheck, values: dict[str, float | None]) -> list[Figure]:
    return [
        Figure(check.id, (End(host),), value, "" if value else "exit 1") for host, value in values.items()
    ]


@pytest.mark.parametrize(
    ("values", "judged", "found"),
    [
        ({"a": 20.0, "b": 21.0, "c": 3.0}, True, [("error", "c")]),
        ({"a": 20.0, "b": 21.0, "c": 15.0}, True, [("warning", "c")]),  # enough, but not as its peers
        ({"a": 0.5, "b": 0.5, "c": 0.3}, False, [("warning", "c")]),  # no GPUs: only beside its peers
        ({"a": 0.5, "b": 0.3}, False, []),  # of two nobody says which is usual
        ({"a": 20.0, "b": 20.0, "c": None}, False, [("error", "c")]),
        ({"a": 20.0, "b": 17.0, "c": 20.0}, True, []),
    ],
)
def test_a_figure_is_held_against_threshold_and_fleet(
    values: dict[str, float | None], judged: bool, found: list[tuple[str, str]]
) -> None:
    told = findings_of(DISK, figures(DISK, values), judged=judged)
    assert [(f.severity, f.ends[0].host) for f in told] == found


def test_a_finding_says_what_was_measured_expected_and_usual() -> None:
    measured = fleet(4)
    values = [
        Figure(WRITE.id, ends, 212.0 if "gpu03" in {e.host for e in ends} else 391.5) for ends in measured
    ]
    (found,) = findings_of(WRITE, values, judged=True)
    assert found.ends == (End("gpu03"),)
    assert found.what == "212 Gb/s in 9 measurements, expected at least 380; median of the fleet 301.8"
    slower = figures(LATENCY, {"a": 120.0, "b": 121.0, "c": 190.0})
    assert [f.what for f in findings_of(LATENCY, slower, judged=True)] == [
        "190 µs, expected at most 142; median of the fleet 121"
    ]


def meeting(*legs: Leg) -> Meeting:
    return Meeting(WRITE, ("a", "b"), legs, ({}, {}), "load-x")


def test_of_two_ways_the_worse_counts_and_a_listener_is_not_read() -> None:
    there = Leg((End("a", "r"), End("b", "r")), ((), ()), listener=0)
    back = Leg((End("b", "r"), End("a", "r")), ((), ()), listener=1)
    line = " 8388608    29410            0.00               {}		     0.005880\n"
    fast, slow, own = (Told(0, line.format(rate)) for rate in ("394.0", "201.0", "1.0"))
    (figure,) = figures_of(meeting(there, back), [(own, slow), (fast, own)])
    assert (figure.value, figure.ends) == (201.0, (End("a", "r"), End("b", "r")))
    stopped, broken = Told(None, ""), Told(1, "Couldn't connect to a:18600\n")
    (figure,) = figures_of(meeting(there, back), [(stopped, slow), (broken, own)])
    assert (figure.value, figure.reason) == (None, "exit 1 on b: Couldn't connect to a:18600")
    (lost,) = figures_of(meeting(there), [(), (broken,)])
    assert lost.value is None


def test_kept_figures_come_back_and_are_compared() -> None:
    before = kept(DISK, figures(DISK, {"a": 20.0, "b": 20.0, "c": None, "gone": 1.0}))
    after = kept(DISK, figures(DISK, {"a": 21.0, "b": 12.0, "c": 20.0}))
    texts = [document("r", "prod", [(one, ())]) for one in (before, after)]
    first, second = (read_back(text, "x") for text in texts)
    assert first == {DISK.id: before}
    (told,) = compare(first, second)
    assert [(m.ends[0].host, m.word) for m in told.moved] == [("b", "worse"), ("c", "better")]
    assert (told.gone, told.new, told.before.usual, told.after.usual) == (1, 0, 20.0, 20.0)
    with pytest.raises(InputError):
        read_back('{"format": 9}', "x")
