"""What a restart does to whom and in which order, and what it refuses with nothing touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from approvers import Approver
from fake_clock import FakeClock
from routed_tables import POOLS, RoutedTables, routed_tables, routed_wanted
from table_fleet import quiet

from launcher.flows.restart import named_by, restart, restart_goal
from launcher.model.finding import Finding, failures
from launcher.model.problem import InputError, PlanRefusedError
from launcher.model.wish import Wanted
from launcher.rollout.run import Run
from launcher.rollout.situation import Options

ONE_BY_ONE = Options(order="rolling", idle_within_s=5.0)
AT_ONCE = replace(ONE_BY_ONE, order="at-once")
ANYHOW = replace(AT_ONCE, below_minimum=True)
CLOCK = FakeClock()
RUN = Run("r1-restart", quiet, lambda *_: "", lambda: False, "ana", "2026-11-29", "a fan", CLOCK)


@pytest.fixture
def wanted(tmp_path: Path) -> Wanted:
    return routed_wanted(tmp_path)


def no_pairing(wanted: Wanted) -> Wanted:
    """The same with an engine whose pairs do not survive the end of one side."""
    profile = wanted.wish.profile
    assert profile.engine
    engine = replace(profile.engine, repair="restart-peer")
    return replace(wanted, wish=replace(wanted.wish, profile=replace(profile, engine=engine)))


def restarted(fleet: Any, wanted: Wanted, target: str, options: Options = ONE_BY_ONE) -> tuple[Finding, ...]:
    assert wanted.deployment
    what = named_by(wanted.deployment, target)
    result = restart(fleet, restart_goal(wanted, what, options), what, Approver(), RUN)
    return (*failures(result.failed), *result.findings)


def refused(fleet: RoutedTables, wanted: Wanted, target: str, options: Options = ONE_BY_ONE) -> Any:
    """The one Problem; nothing may have been done anywhere."""
    with pytest.raises(PlanRefusedError) as caught:
        restarted(fleet, wanted, target, options)
    assert {what for _, what in fleet.log} == {"ask"}
    (problem,) = caught.value.problems
    return problem


def down(fleet: RoutedTables, host: str, instance: str) -> None:
    fleet.tables[host].units[f"dsv32-{instance}.service"].active = "failed"


def engines(fleet: RoutedTables) -> list[str]:
    """Orders and drains, without the routers' own restarts."""
    return [what for _, what in fleet.told if not what.startswith("restart ")]


def test_one_after_the_other_gives_back_and_takes_at_once(wanted: Wanted) -> None:
    fleet = routed_tables(wanted)
    findings = restarted(fleet, wanted, "decode")
    assert [f.text for f in findings if f.problem] == []
    assert engines(fleet) == [
        *("drained decode-0", "stop decode-0", "run decode-0"),
        *("drained decode-1", "stop decode-1", "run decode-1", "drained "),
    ]
    pairs = [f.subject for f in findings if "asked directly" in f.text]
    assert pairs == [
        f"{p} → {d}" for d in ("decode-0@h02", "decode-1@h03") for p in ("prefill-0@h01", "prefill-1@h04")
    ]


def test_what_serves_nobody_is_first(wanted: Wanted) -> None:
    fleet = routed_tables(wanted)
    down(fleet, "h03", "decode-1")
    restarted(fleet, wanted, "decode")
    assert [w for w in engines(fleet) if w.startswith("run")] == ["run decode-1", "run decode-0"]


def test_the_canary_is_one_and_ends_it_when_it_does_not_answer(wanted: Wanted) -> None:
    fleet = routed_tables(wanted)
    fleet.tables["h01"].dumb = True  # type: ignore[attr-defined]
    findings = restarted(fleet, wanted, "prefill", replace(ANYHOW, order="canary"))
    failed = [f.subject for f in findings if f.problem and "→" in f.subject]
    assert failed == ["prefill-0@h01 → decode-0@h02", "prefill-0@h01 → decode-1@h03"]
    assert engines(fleet) == ["drained prefill-0", "stop prefill-0", "run prefill-0"]


def test_both_sides_by_halves_where_pairs_do_not_survive(wanted: Wanted) -> None:
    fleet = routed_tables(wanted)
    findings = restarted(fleet, no_pairing(wanted), "prefill-1", AT_ONCE)
    assert [f.text for f in findings if f.problem] == []
    drains = [w for w in engines(fleet) if w.startswith("drained")]
    assert drains == ["drained prefill-1 decode-0", "drained prefill-0 decode-1", "drained "]
    order = [w for w in engines(fleet) if w.startswith(("drained", "run"))]
    assert sorted(order[1:3]) == ["run decode-0", "run prefill-1"]
    assert sorted(order[4:6]) == ["run decode-1", "run prefill-0"]
    pairs = [f.subject for f in findings if "asked directly" in f.text]
    assert pairs[0] == "prefill-1@h04 → decode-0@h02", "not with whom it knew before"
    assert len(pairs) == 1 + 3


def test_both_sides_need_twice_the_minimum(tmp_path: Path) -> None:
    few = {**POOLS, "decode": {"hosts": ["h02"]}}
    wanted = no_pairing(routed_wanted(tmp_path, pools=few))
    fleet = routed_tables(wanted)
    problem = refused(fleet, wanted, "prefill-0")
    assert problem.what == "pool decode would have 0 instances that serve, its minimum is 1"
    assert "stub does not pair again by itself" in problem.why
    assert "--below-minimum: decode-0, prefill-0, prefill-1 restart at once" in problem.do
    findings = restarted(fleet, wanted, "prefill-0", ANYHOW)
    assert [f.text for f in findings if f.problem] == []
    assert not [w for w in engines(fleet) if w.startswith("drained")]
    assert len([w for w in engines(fleet) if w.startswith("run")]) == 3


def test_too_few_that_serve(wanted: Wanted) -> None:
    fleet = routed_tables(wanted)
    down(fleet, "h03", "decode-1")
    problem = refused(fleet, wanted, "decode-0")
    assert problem.what == "pool decode would have 0 instances that serve, its minimum is 1"
    assert problem.why == "these serve now: decode-0"
    fleet.log.clear()
    findings = restarted(fleet, wanted, "decode-1")
    assert [f.text for f in findings if f.problem] == [], "one that serves nobody takes nothing away"


@pytest.mark.parametrize("host", ["h03", "h04"])
def test_a_host_that_does_not_answer(wanted: Wanted, host: str) -> None:
    fleet = routed_tables(wanted)
    fleet.unreached.add(host)
    target = "decode-1" if host == "h03" else "router"
    assert refused(fleet, wanted, target).what == "no answer within 15 s"


def test_an_instance_that_routers_could_not_be_told_to_forget_is_left_as_it_is(wanted: Wanted) -> None:
    fleet = routed_tables(wanted)
    fleet.broken = lambda host, op: op.verb == "answer"
    findings = restarted(fleet, wanted, "decode-1")
    assert [f.subject for f in findings if f.problem] == ["h04, step router/units"]
    assert not [w for w in engines(fleet) if "decode-1" in w]


def test_routers_of_a_host_in_turns_and_with_all_that_is_on_it(wanted: Wanted) -> None:
    fleet = routed_tables(wanted)
    restarted(fleet, wanted, "router")
    assert fleet.told == [("h04", f"restart dsv32-router-{slot}.service") for slot in "ba"], "users reached a"
    fleet.told.clear()
    restarted(fleet, wanted, "h04")
    assert [w for _, w in fleet.told][-2:] == [f"restart dsv32-router-{slot}.service" for slot in "ab"]
    assert "run prefill-1" in engines(fleet)


def test_kv_that_is_fetched_need_not_be_waited_for_longer(wanted: Wanted) -> None:
    fleet, looks = routed_tables(wanted), 0

    def fetched(host: str) -> None:
        nonlocal looks
        table = fleet.tables["h01"]
        looks += host == "h01"
        table.held = 0.25 if looks < 6 else 0.0  # type: ignore[attr-defined]

    fleet.before = fetched
    before = len(CLOCK.slept)
    findings = restarted(fleet, wanted, "prefill-0")
    assert len(CLOCK.slept) > before, "KV was held for a while"
    assert [f.text for f in findings if f.text.startswith("drained")] == [
        "drained: no request runs or waits, no KV is held"
    ]


def test_nothing_of_that_name(wanted: Wanted) -> None:
    assert wanted.deployment
    with pytest.raises(InputError, match="`decode-7` is no instance, pool or host with one"):
        named_by(wanted.deployment, "decode-7")
