"""The planner: what is wished for plans nothing, instances move as a whole, order, orphans, staleness."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_wanted import ENGINE, HOSTS, SPANS, step, steps_of, wanted_of
from table_fleet import UNITS, Path, TableFleet, Unit, fleet_of, quiet

from launcher.execute import apply, make_plan, observe
from launcher.execute.saved import refuse_if_moved, saved_text
from launcher.model.plan import Plan
from launcher.model.problem import InputError, PlanRefusedError
from launcher.model.role import STAGES
from launcher.model.wish import Wanted
from launcher.rollout.situation import Situation
from launcher.rollout.strategy import with_moves
from launcher.steps import file


def plan_of(fleet: TableFleet, wanted: Wanted) -> Plan:
    return make_plan(wanted, observe(fleet, wanted))


def moves_of(fleet: TableFleet, wanted: Wanted) -> Plan:
    observed = observe(fleet, wanted)
    return with_moves(Situation(wanted, observed, make_plan(wanted, observed)))


def applied(wanted: Wanted) -> TableFleet:
    fleet = fleet_of(HOSTS)
    apply(fleet, wanted, moves_of(fleet, wanted), quiet, await_ready=lambda i: None)
    return fleet


@cache
def applied_once() -> TableFleet:
    """Copy it: it is made once for all examples."""
    return applied(wanted_of())


def lines(plan: Plan) -> list[str]:
    return [f"{c.host} {c.action.value} {c.subject}" for c in plan.changes]


def test_a_bare_fleet_is_planned_by_stage_then_host_then_instance() -> None:
    plan = plan_of(fleet_of(HOSTS), wanted_of())
    assert plan.stages == ("host", "runtime", "engine", "router")
    stages = [STAGES.index(c.stage) for c in plan.changes]
    assert stages == sorted(stages)
    assert lines(plan)[:4] == [
        "h1 + /etc/app",
        "h1 + /etc/app/app.conf",
        "h2 + /etc/app",
        "h2 + /etc/app/app.conf",
    ]
    life = [(c.instance, c.host, c.action.name) for c in plan.changes if c.instance]
    assert life == [
        ("prefill-0", "h1", "START"),
        ("decode-0", "h2", "START"),
        ("decode-0", "h3", "START"),
        ("decode-1", "h4", "START"),
    ]


def test_the_wished_state_plans_nothing_and_sends_nothing() -> None:
    wanted = wanted_of()
    fleet = applied(wanted)
    plan = moves_of(fleet, wanted)
    assert plan.changes == ()
    fleet.log.clear()
    apply(fleet, wanted, plan, quiet, await_ready=lambda i: None)
    assert fleet.log == []


def drifts() -> st.SearchStrategy[list[tuple[str, str]]]:
    kinds = [
        "no file",
        "wrong text",
        "wrong mode",
        "a folder",
        "stopped",
        "failed",
        "old release",
        "disabled",
    ]
    return st.lists(st.tuples(st.sampled_from(HOSTS), st.sampled_from(kinds)), max_size=8)


def drift(fleet: TableFleet, host: str, kind: str) -> None:
    table = fleet.tables[host]
    conf = "/etc/app/app.conf"
    match kind:
        case "no file":
            table.paths.pop(conf, None)
        case "wrong text":
            table.paths[conf] = Path("file", "0640", "root", "root", b"other")
        case "wrong mode" if conf in table.paths:
            table.paths[conf].mode = "0777"
        case "a folder":
            table.paths[conf] = Path("folder", "0755", "root", "root")
        case "stopped" | "failed":
            for have in table.units.values():
                have.active = "inactive" if kind == "stopped" else "failed"
        case "old release":
            for have in table.units.values():
                have.release = "0123456789abcdef"
        case "disabled":
            for have in table.units.values():
                have.enabled = "disabled"


@given(drifts())
def test_from_any_drift_one_apply_reaches_what_is_wished(faults: list[tuple[str, str]]) -> None:
    wanted = wanted_of()
    fleet = deepcopy(applied_once())
    for host, kind in faults:
        drift(fleet, host, kind)
    plan = moves_of(fleet, wanted)
    assert {c.host for c in plan.changes if not c.instance} <= {host for host, _ in faults}
    outcome = apply(fleet, wanted, plan, quiet, await_ready=lambda i: None)
    assert not outcome.problems
    assert outcome.done == outcome.planned == len(plan.changes)
    assert plan_of(fleet, wanted).changes == ()


@given(drifts())
def test_if_one_process_moves_all_processes_of_its_instance_do(faults: list[tuple[str, str]]) -> None:
    wanted = wanted_of()
    fleet = deepcopy(applied_once())
    for host, kind in faults:
        drift(fleet, host, kind)
    moved: dict[str, set[str]] = {}
    for change in plan_of(fleet, wanted).changes:
        if change.instance:
            moved.setdefault(change.instance, set()).add(change.host)
    assert all(hosts == set(SPANS[name]) for name, hosts in moved.items())


def test_a_peer_says_why_it_restarts() -> None:
    wanted = wanted_of()
    fleet = applied(wanted)
    fleet.tables["h2"].units["dsv32-decode-0.service"].active = "failed"
    plan = plan_of(fleet, wanted)
    assert lines(plan) == ["h2 ▶ dsv32-decode-0.service", "h3 ↻ dsv32-decode-0.service"]
    assert plan.changes[1].because.endswith("decode-0 starts as a whole, and it starts on h2")
    assert [dict(op.args) for op in plan.changes[1].ops] == [
        {"stop": ["dsv32-decode-0.service"]},
        {"start": ["dsv32-decode-0.service"]},
    ]


def test_a_host_out_of_reach_takes_its_instances_out_of_the_plan() -> None:
    wanted, fleet = wanted_of(), fleet_of(HOSTS)
    fleet.unreached = {"h3"}
    plan = plan_of(fleet, wanted)
    assert {h: p.what for h, p in plan.unreached.items()} == {"h3": "no answer within 15 s"}
    assert {c.instance for c in plan.changes if c.instance} == {"prefill-0", "decode-1"}
    assert not [c for c in plan.changes if c.host == "h3"]
    assert "h2 + /etc/systemd/system/dsv32-decode-0.service" in lines(plan)


def test_units_of_ours_that_no_step_names_go_and_others_stay() -> None:
    wanted = wanted_of()
    fleet = applied(wanted)
    table = fleet.tables["h4"]
    for name in ("dsv32-decode-7.service", "dsv32-job-venv-1.service", "nginx.service"):
        table.paths[UNITS + name] = Path("file", "0644", "root", "root", b"[Service]\n")
        table.units[name] = Unit("active", "enabled", b"[Service]\n")
    plan = moves_of(fleet, wanted)
    assert lines(plan) == ["h4 - dsv32-decode-7.service"]
    apply(fleet, wanted, plan, quiet, await_ready=lambda i: None)
    assert table.units["dsv32-decode-7.service"] == Unit("inactive", "disabled", b"[Service]\n")
    assert UNITS + "dsv32-decode-7.service" not in table.paths
    assert table.units["dsv32-job-venv-1.service"].active == "active"
    assert table.units["nginx.service"].active == "active"
    assert plan_of(fleet, wanted).changes == ()


def test_a_run_killed_between_writing_a_unit_and_restarting_it_restarts_it_next_time() -> None:
    fleet = applied(wanted_of())
    newer = wanted_of(engine=ENGINE.replace("release 1", "release 2"))
    path = UNITS + "dsv32-decode-1.service"
    written = next(c for c in plan_of(fleet, newer).changes if c.subject == path).ops[0]
    fleet.tables["h4"].do(written)
    rest = [c for c in plan_of(fleet, newer).changes if c.host == "h4"]
    assert [(c.action.name, c.subject) for c in rest] == [
        ("UPDATE", "dsv32-decode-1.service"),
        ("RESTART", "dsv32-decode-1.service"),
    ]


def test_a_saved_plan_is_used_as_it_was_or_not_at_all() -> None:
    wanted, fleet = wanted_of(), fleet_of(HOSTS)
    text = saved_text(plan_of(fleet, wanted))
    refuse_if_moved(text, plan_of(fleet, wanted), path="p.json")

    fleet.tables["h1"].paths["/etc/app"] = Path("folder", "0700", "root", "root")
    with pytest.raises(PlanRefusedError) as caught:
        refuse_if_moved(text, plan_of(fleet, wanted), path="p.json")
    assert [p.what for p in caught.value.problems] == [
        "h1, step base/folder: /etc/app is a new change: folder 0700 root:root → folder 0755 root:root",
        "h1, step base/folder: /etc/app is no longer needed: absent → folder 0755 root:root",
    ]
    with pytest.raises(PlanRefusedError, match="were edited since the plan was saved"):
        refuse_if_moved(text, replace(plan_of(fleet, wanted), data_digest="d2"), path="p.json")
    with pytest.raises(InputError, match="not a saved plan"):
        refuse_if_moved("[]", plan_of(fleet, wanted), path="p.json")


def test_a_saved_plan_holds_no_secret() -> None:
    secret = step("h1", "key/file", "file", file.Params("/etc/key", "hunter2", secret=True))
    wanted = wanted_of({"h1": (*steps_of("h1"), secret)})
    fleet = fleet_of(["h1"])
    plan = make_plan(wanted, observe(fleet, wanted))
    assert any(op.content == b"hunter2" for c in plan.changes for op in c.ops)
    assert "hunter2" not in saved_text(plan)
