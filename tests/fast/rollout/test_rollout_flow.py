"""A rollout on hosts as tables: who gets requests at every moment, however it fails or is killed."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
from approvers import Approver
from fake_clock import FakeClock
from moving_tables import MovingTable, Watched, known, next_of
from routed_tables import POOLS, routed_tables, routed_wanted
from table_fleet import Killed, quiet

from launcher.flows import revisions
from launcher.flows.drain import drain
from launcher.flows.up import Result, up
from launcher.model.deployment import Drained
from launcher.model.problem import PlanRefusedError
from launcher.model.wish import Wanted
from launcher.resolve import resolve
from launcher.rollout.planning import Goal, look, plan
from launcher.rollout.run import Run
from launcher.rollout.situation import Options

CAREFUL = Options(keeps_minimum=True, needs_all=True, idle_within_s=5.0)
ANYHOW = replace(CAREFUL, below_minimum=True)
EVERY = 17
"""Ops from one kill to the next."""
ROLLBACK = "20261129T180000Z-rollback"


def fleet_with(wanted: Wanted) -> Watched:
    """Hosts where all of it runs, as wanted."""
    made = routed_tables(wanted)
    fleet = Watched({h: MovingTable(**vars(t)) for h, t in made.tables.items()})
    moved(fleet, wanted, wanted, ANYHOW, name="20261129T170000Z-up")
    assert not moved(fleet, wanted, wanted, name="20261129T170001Z-up").plan
    fleet.told.clear()
    fleet.watching = True
    return fleet


def moved(
    fleet: Watched,
    before: Wanted,
    after: Wanted,
    options: Options = CAREFUL,
    *,
    name: str = "20261129T180000Z-rollback",
) -> Result:
    goal = Goal(after, frozenset(after.steps), options, before)
    return up(fleet, goal, Approver(), a_run(name), go_back_on_failure=True)


def a_run(name: str) -> Run:
    clock, flow = FakeClock(), name.partition("-")[2]
    return Run(name, quiet, lambda *_: "", lambda: False, "ana", "2026-11-29T18:05:00Z", "why", clock, flow)


def test_one_half_after_the_other_where_they_cannot_serve_together(before: Wanted, after: Wanted) -> None:
    fleet = fleet_with(before)
    result = moved(fleet, before, after)
    assert not result.problems
    assert fleet.always_served()
    assert fleet.environments() == {"stub-next"}
    assert drains(fleet) == ["drained prefill-0 decode-0", "drained prefill-1 decode-1", "drained "]
    (*_, last), _ = revisions.recall(fleet, fleet.tables)
    assert (last.version, last.result) == ("1.1", "good")
    assert not moved(fleet, before, after).plan


def test_what_cannot_start_is_brought_back_and_nobody_notices(before: Wanted, after: Wanted) -> None:
    fleet = fleet_with(before)
    fleet.tables["h02"].refuses = "stub-next"  # type: ignore[attr-defined]
    result = moved(fleet, before, after)
    assert result.exit_code == 1
    assert "decode-0" in result.problems[0].what
    assert result.findings[-1].text == "what was before serves again"
    assert fleet.always_served()
    assert fleet.environments() == {"stub-routed"}
    assert drains(fleet)[-1] == "drained "
    assert not plan(fleet, before)
    (*_, last), _ = revisions.recall(fleet, fleet.tables)
    assert (last.version, last.result) == ("1.1", "failed")


def test_what_fails_when_users_are_there_already_stays_away(before: Wanted, after: Wanted) -> None:
    fleet = fleet_with(before)
    fleet.tables["h03"].refuses = "stub-next"  # type: ignore[attr-defined]
    result = moved(fleet, before, after)
    assert "decode-1" in result.problems[0].what
    assert fleet.always_served()
    assert fleet.environments() == {"stub-next"}
    assert drains(fleet)[-1] == "drained prefill-1 decode-1"
    fleet.tables["h03"].refuses = ""  # type: ignore[attr-defined]
    again = moved(fleet, before, after)
    assert not again.problems
    assert fleet.always_served()
    assert drains(fleet)[-1] == "drained "


@pytest.mark.parametrize("back", [False, True], ids=["on", "back"])
def test_killed_at_any_op_and_given_again(before: Wanted, after: Wanted, back: bool) -> None:
    """The same command ends it, and a rollback undoes it, without a moment in which nothing serves."""
    start = fleet_with(before)
    start.log.clear()
    whole = deepcopy(start)
    moved(whole, before, after)
    ops = sum(1 for _, what in whole.log if what != "ask")
    for number in range(1 + back, ops, EVERY):
        fleet = deepcopy(start)
        fleet.ops_left = number
        with pytest.raises(Killed):
            moved(fleet, before, after)
        fleet.ops_left = None
        way = (after, before) if back else (before, after)
        result = moved(fleet, *way, name="20261129T190000Z-rollback")
        assert not result.problems, number
        assert fleet.always_served(), number
        assert not plan(fleet, way[1]), number


def test_too_few_for_two_halves(tmp_path: Path) -> None:
    before = known(routed_wanted(tmp_path, pools={**POOLS, "decode": {"hosts": ["h02"]}}))
    after = next_of(tmp_path)
    fleet = fleet_with(before)
    fleet.log.clear()
    with pytest.raises(PlanRefusedError) as caught:
        moved(fleet, before, after)
    (problem,) = caught.value.problems
    assert problem.what == "pool decode has 1 instances that serve, too few for two groups of 1"
    assert "vLLM 1.0 → 1.1" in problem.why
    assert {what for _, what in fleet.log} == {"ask"}
    result = moved(fleet, before, after, ANYHOW)
    assert not result.problems
    assert fleet.environments() == {"stub-next"}
    assert drains(fleet) == ["drained prefill-1", "drained "], "a break as short as one start"


def test_what_serves_nobody_moves_first(before: Wanted, after: Wanted) -> None:
    fleet = fleet_with(before)
    fleet.tables["h02"].units["dsv32-decode-0.service"].active = "failed"
    result = moved(fleet, before, after)
    assert not result.problems
    assert drains(fleet)[0].endswith("decode-0")
    assert fleet.always_served()


def test_one_after_the_other_where_they_can_serve_together(before: Wanted, tmp_path: Path) -> None:
    fleet = fleet_with(before)
    other = known(routed_wanted(tmp_path, settings={"all": {"max-num-seqs": 17}}))
    result = moved(fleet, before, other)
    assert not result.problems
    assert fleet.always_served()
    assert drains(fleet) == [
        "drained prefill-0 decode-0",
        "drained prefill-1 decode-1",
        "drained ",
    ]


def drains(fleet: Watched) -> list[str]:
    return [what for _, what in fleet.told if what.startswith("drained")]


def upped(fleet: Watched, wanted: Wanted, name: str, options: Options | None = None) -> Result:
    """`up`, which sees what runs by what engines recorded at their start."""
    goal = Goal(wanted, frozenset(wanted.steps), options or Options())
    return up(fleet, goal, Approver(), a_run(name))


@pytest.mark.parametrize("again", ["forth", "back"])
@pytest.mark.parametrize("apart", ["release", "hashed setting"])
def test_up_goes_by_halves_where_both_cannot_serve_together(
    before: Wanted, tmp_path: Path, apart: str, again: str
) -> None:
    """From where it began, or where another run was killed."""
    hashed = {"all": {"dtype": "float16"}}
    after = next_of(tmp_path) if apart == "release" else known(routed_wanted(tmp_path, settings=hashed))
    wanted = after if again == "forth" else before
    start = fleet_with(before)
    start.log.clear()
    whole = deepcopy(start)
    upped(whole, after, "20261129T180000Z-up")
    assert drains(whole) == ["drained prefill-0 decode-0", "drained prefill-1 decode-1", "drained "]
    ops = sum(1 for _, what in whole.log if what != "ask")
    for number in (*range(2, ops, 2 * EVERY), None):
        fleet = deepcopy(start) if number else whole
        fleet.ops_left = number
        if number:
            with pytest.raises(Killed):
                upped(fleet, after, "20261129T180000Z-up")
        fleet.ops_left = None
        result = upped(fleet, wanted, "20261129T190000Z-up")
        assert not result.problems, number
        assert fleet.always_served(), number
        assert not plan(fleet, wanted), number


@pytest.mark.parametrize("options", [None, Options(reboots=False), Options(below_minimum=True)])
def test_up_refuses_hosts_that_need_to_stop_beside_engines_that_move_by_halves(
    before: Wanted, after: Wanted, options: Options | None
) -> None:
    """Whatever it may do to hosts; `h02` gets a limit that is said to need engines to stop."""
    step = next(s for s in after.steps["h02"] if s.id == "os-base/limits")
    other = replace(step, want=replace(step.want, content="* hard nofile 1\n"))
    own = tuple(other if s is step else s for s in after.steps["h02"])
    roles = tuple(replace(r, halts=r.name == "os-base") for r in after.wish.roles)
    wish = replace(after.wish, roles=roles)
    needy = replace(after, wish=wish, steps={**after.steps, "h02": own})
    fleet = fleet_with(before)
    fleet.log.clear()
    with pytest.raises(PlanRefusedError) as caught:
        upped(fleet, needy, "20261129T180000Z-up", options)
    (problem,) = caught.value.problems
    assert problem.where == "h02"
    assert problem.what.startswith("h02 needs os-base/limits, for which its engines stop")
    assert "vLLM 1.0 → 1.1" in problem.why
    assert "dsv32-launch down, then up" in problem.do
    assert {what for _, what in fleet.log} == {"ask"}, "nothing was changed"


@pytest.mark.parametrize("why", ["moving: a new stack", "restart: a fan", "rollout"])
def test_what_an_operator_drained_stays_drained_whatever_its_reason(
    before: Wanted, after: Wanted, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("launcher.rollout.service.resolve", lambda *told: known(resolve(*told)))
    fleet = fleet_with(before)
    entry = Drained("prefill-1", "ana", "2026-11-29T18:05:00Z", why)
    goal = Goal(before, frozenset(before.steps), CAREFUL)
    drain(fleet, goal, entry, Approver(), a_run("r-drain"), below_minimum=True, within_s=5.0)
    assert look(fleet, before).drained == (entry,)
    assert not moved(fleet, before, before).plan
    assert not moved(fleet, before, after, ANYHOW).problems
    assert look(fleet, after).drained == (entry,)
    assert "prefill-1" not in fleet.reached()
