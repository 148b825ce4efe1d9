"""Apply on hosts that are tables: order, barriers, surprises, and what one failure does to all others."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy

import pytest
from small_wanted import ENGINE, HOSTS, SPANS, step, steps_of, wanted_of
from table_fleet import UNITS, Killed, Path, TableFleet, fleet_of, quiet

from launcher.execute import Outcome, apply, make_plan, observe
from launcher.execute.batch import batch
from launcher.model.deployment import Instance
from launcher.model.plan import Op, Plan
from launcher.model.problem import Exit, PlanRefusedError, Problem
from launcher.model.run import Event
from launcher.model.wish import Wanted
from launcher.rollout.service import probes, service
from launcher.rollout.situation import Situation
from launcher.rollout.strategy import with_moves
from launcher.steps import command, unit

NEWER = ENGINE.replace("release 1", "release 2")


def up(fleet: TableFleet, wanted: Wanted, not_ready: Iterable[str] = ()) -> Outcome:
    def ready(instance: Instance) -> Problem | None:
        fleet.log.append((instance.name, "awaited"))
        return Problem(f"{instance.name} died", do="look") if instance.name in not_ready else None

    return apply(fleet, wanted, planned(fleet, wanted), quiet, await_ready=ready)


def planned(fleet: TableFleet, wanted: Wanted) -> Plan:
    """As a command plans it, with all that serves taken for what it is."""
    observed = observe(fleet, wanted, beside=probes(wanted))
    now = service(wanted, observed.answers)
    return with_moves(Situation(wanted, observed, make_plan(wanted, observed), now))


def served(wanted: Wanted) -> TableFleet:
    fleet = fleet_of(HOSTS)
    up(fleet, wanted)
    fleet.log.clear()
    return fleet


def sent(fleet: TableFleet, *, but: str = "ask") -> list[tuple[str, str]]:
    return [entry for entry in fleet.log if entry[1] != but]


def test_a_bare_fleet_is_brought_up() -> None:
    fleet, wanted = fleet_of(HOSTS), wanted_of()
    outcome = up(fleet, wanted)
    assert outcome.exit_code is Exit.DONE
    assert outcome.instances == {"prefill-0": None, "decode-0": None, "decode-1": None}
    assert outcome.next_command == "dsv32-launch status inventory.yaml"
    assert all(u.active == "active" for t in fleet.tables.values() for u in t.units.values())
    router = fleet.tables["h5"].units["dsv32-router.service"]
    assert router.enabled == "enabled"
    awaited = [n for n, (_, what) in enumerate(fleet.log) if what == "awaited"]
    started = fleet.log.index(("h5", "units reload enable dsv32-router.service start dsv32-router.service"))
    assert len(awaited) == 3
    assert max(awaited) < started


def test_an_instance_stops_everywhere_before_it_starts_anywhere() -> None:
    fleet = served(wanted_of())
    up(fleet, wanted_of(engine=NEWER))
    life = [e for e in sent(fleet) if "decode-0" in e[1] and ("start " in e[1] or "stop " in e[1])]
    assert life == [
        ("h2", "units stop dsv32-decode-0.service"),
        ("h3", "units stop dsv32-decode-0.service"),
        ("h2", "units start dsv32-decode-0.service"),
        ("h3", "units start dsv32-decode-0.service"),
    ]


def test_instances_that_serve_restart_one_of_a_pool_after_the_other() -> None:
    fleet = served(wanted_of())
    up(fleet, wanted_of(engine=NEWER))
    stops = [n for n, e in enumerate(fleet.log) if e[1] == "units stop dsv32-decode-1.service"]
    assert stops[0] > fleet.log.index(("decode-0", "awaited"))


def test_a_failed_restart_leaves_the_instances_after_it_alone() -> None:
    fleet = served(wanted_of())
    outcome = up(fleet, wanted_of(engine=NEWER), not_ready=["decode-0"])
    assert fleet.tables["h4"].units["dsv32-decode-1.service"].active == "active"
    assert not any("stop dsv32-decode-1" in what for _, what in fleet.log)
    assert "decode-1 is not restarted and runs what it ran before" in [p.what for p in outcome.problems]
    assert outcome.instances["decode-1"] is None
    assert outcome.exit_code is Exit.HOSTS_FAILED


def test_what_does_not_become_ready_is_stopped_on_all_its_hosts() -> None:
    fleet = fleet_of(HOSTS)
    outcome = up(fleet, wanted_of(), not_ready=["decode-0"])
    down = {h for h in HOSTS for u in fleet.tables[h].units.values() if u.active != "active"}
    assert down == set(SPANS["decode-0"])
    assert outcome.instances["decode-0"] == Problem("decode-0 died", do="look")
    assert fleet.tables["h5"].units["dsv32-router.service"].active == "active"


def test_a_pool_below_its_minimum_keeps_the_router_as_it_is() -> None:
    fleet = fleet_of(HOSTS)
    outcome = up(fleet, wanted_of(), not_ready=["decode-0", "decode-1"])
    assert "pool decode has 0 of 2 instances, its minimum is 1" in [p.what for p in outcome.problems]
    assert "dsv32-router.service" not in fleet.tables["h5"].units
    assert outcome.next_command == "dsv32-launch up inventory.yaml"


def test_a_failed_step_stops_its_host_and_its_instances_and_nothing_else() -> None:
    fleet = fleet_of(HOSTS)
    fleet.broken = lambda host, op: host == "h3" and op.args.get("path") == "/etc/app/env.conf"
    outcome = up(fleet, wanted_of())
    (host, instance) = outcome.problems
    assert host == Problem("/etc/app/env.conf: disk is full", where="h3, step env/conf", do="free some")
    assert instance.what == "decode-0 is not started"
    assert fleet.tables["h2"].units["dsv32-decode-0.service"].active != "active"
    assert not any(h == "h3" and UNITS in what for h, what in fleet.log)
    assert fleet.tables["h4"].units["dsv32-decode-1.service"].active == "active"
    assert outcome.hosts["h3"].done == 2


def test_a_host_out_of_reach_costs_its_instance_alone() -> None:
    fleet = fleet_of(HOSTS)
    fleet.unreached = {"h2"}
    outcome = up(fleet, wanted_of())
    assert [n for n, problem in outcome.instances.items() if problem] == ["decode-0"]
    assert not any(h == "h2" for h, _ in fleet.log)
    assert fleet.tables["h5"].units["dsv32-router.service"].active == "active"


def test_a_host_with_nothing_planned_gets_nothing_sent() -> None:
    wanted = wanted_of()
    fleet = served(wanted)
    fleet.tables["h1"].paths["/etc/app/app.conf"].content = b"drift"
    plan = planned(fleet, wanted)
    fleet.log.clear()
    apply(fleet, wanted, plan, quiet, await_ready=lambda i: None)
    assert fleet.log == [("h1", "put /etc/app/app.conf"), ("h1", "ask")]


def test_a_unit_that_ends_as_soon_as_it_started_is_told() -> None:
    fleet, wanted = fleet_of(HOSTS), wanted_of()

    def ends(host: str) -> None:
        for unit_ in fleet.tables[host].units.values():
            if host == "h5" and unit_.active == "active":
                unit_.active = "failed"

    fleet.before = ends
    outcome = up(fleet, wanted)
    assert outcome.exit_code is Exit.HOSTS_FAILED
    (problem,) = outcome.problems
    assert problem.what.startswith("dsv32-router.service was applied and is still failed")


def test_what_was_not_in_the_plan_stops_the_run() -> None:
    fleet, wanted = fleet_of(HOSTS), wanted_of()
    plan = planned(fleet, wanted)
    asked: list[str] = []

    def someone_else(host: str) -> None:
        asked.append(host)
        if asked.count("h1") == 2:  # after the second stage, before engines
            fleet.tables["h1"].paths["/etc/app/env.conf"].mode = "0600"
            fleet.tables["h4"].paths["/etc/app"] = Path("folder", "0700", "root", "root")
            fleet.tables["h5"].paths[UNITS + "dsv32-old.service"] = Path("file", "0644", "root", "root")

    fleet.before = someone_else
    with pytest.raises(PlanRefusedError) as caught:
        apply(fleet, wanted, plan, quiet, await_ready=lambda i: None)
    assert [(p.where, p.what) for p in caught.value.problems] == [
        (
            "h4, step base/folder",
            "/etc/app was planned to stay as it is and is now folder 0700 root:root, "
            "wanted folder 0755 root:root",
        ),
        (
            "h1, step env/conf",
            "/etc/app/env.conf was planned to stay as it is and is now file 0600 root:root, "
            "wanted file 0644 root:root",
        ),
        (
            "h5, step orphan[dsv32-old.service]",
            "dsv32-old.service was planned to stay as it is and is now there, wanted stopped and absent",
        ),
    ]
    assert not any("start" in what for _, what in fleet.log)


def test_a_step_that_does_not_hold_is_a_failure_of_its_host() -> None:
    fleet, wanted = fleet_of(HOSTS), wanted_of()
    undone = {"done": False}

    def undo(host: str) -> None:
        if host == "h4" and "/etc/app/app.conf" in fleet.tables["h4"].paths:
            undone["done"] = True
            del fleet.tables["h4"].paths["/etc/app/app.conf"]

    fleet.before = undo
    outcome = up(fleet, wanted)
    assert undone["done"]
    (problem,) = (p for p in outcome.problems if p.where == "h4, step base/conf")
    assert problem.what.startswith("/etc/app/app.conf was applied and is still absent, wanted file 0640")
    assert outcome.instances["decode-1"] is not None
    assert fleet.tables["h2"].units["dsv32-decode-0.service"].active == "active"


def test_a_plan_may_shrink_on_its_way() -> None:
    fleet, wanted = fleet_of(HOSTS), wanted_of()
    plan = planned(fleet, wanted)
    fleet.tables["h1"].paths["/etc/app/env.conf"] = Path("file", "0644", "root", "root", b"env\n")
    outcome = apply(fleet, wanted, plan, quiet, await_ready=lambda i: None)
    assert outcome.exit_code is Exit.DONE
    assert ("h1", "put /etc/app/env.conf") not in fleet.log
    assert outcome.done == outcome.planned


def count_of_ops(wanted: Wanted, start: TableFleet) -> int:
    fleet = TableFleet(deepcopy(start.tables), ops_left=10_000)
    up(fleet, wanted)
    assert fleet.ops_left is not None
    return 10_000 - fleet.ops_left


@pytest.mark.parametrize("bare", [True, False], ids=["bare hosts", "a new release"])
def test_killed_after_any_op_and_run_again_ends_where_one_run_ends(bare: bool) -> None:
    wanted = wanted_of(engine=NEWER)
    start = fleet_of(HOSTS) if bare else served(wanted_of())
    straight = TableFleet(deepcopy(start.tables))
    up(straight, wanted)
    ops = count_of_ops(wanted, start)
    assert ops > 15
    for killed_after in range(ops):
        fleet = TableFleet(deepcopy(start.tables), ops_left=killed_after)
        with pytest.raises(Killed):
            up(fleet, wanted)
        fleet.ops_left = None
        assert up(fleet, wanted).exit_code is Exit.DONE
        assert fleet.tables == straight.tables, f"killed after op {killed_after}"


def test_once_interrupted_nothing_new_is_sent() -> None:
    fleet, wanted = fleet_of(HOSTS), wanted_of()
    plan = planned(fleet, wanted)
    fleet.log.clear()
    heard: list[Event] = []
    outcome = apply(
        fleet,
        wanted,
        plan,
        heard.append,
        await_ready=lambda i: None,
        interrupted=lambda: any(e.kind == "stage-done" for e in heard),
    )
    assert outcome.exit_code is Exit.INTERRUPTED
    assert {what for _, what in fleet.log} == {"folder /etc/app", "put /etc/app/app.conf"}
    assert outcome.next_command == "dsv32-launch up inventory.yaml"


def test_units_of_one_host_cost_one_reload_and_one_start() -> None:
    names = [f"dsv32-x{n}.service" for n in range(3)]
    steps = [step("h1", f"x/{n}", "unit", unit.Params(n, ENGINE, enabled=True)) for n in names]
    wanted, fleet = wanted_of({"h1": (*steps_of("h1")[:2], *steps)}), fleet_of(["h1"])
    plan = make_plan(wanted, observe(fleet, wanted))
    work = batch(plan.changes)
    assert [op.verb for op in work.ops] == ["folder", "put", "put", "put", "put", "units"]
    assert work.ops[-1] == Op("units", {"reload": True, "enable": names, "start": names})
    assert work.failed(3) == plan.changes[5:6]
    assert work.done(3) == plan.changes[:2], "its text is written and not yet loaded"


def test_systemctl_is_not_moved_past_what_may_need_its_unit() -> None:
    steps = (
        step("h1", "x/a", "unit", unit.Params("dsv32-a.service", ENGINE)),
        step("h1", "x/ask-a", "command", command.Params(("ask-a",), command.Unless(path="/asked"))),
        step("h1", "x/b", "unit", unit.Params("dsv32-b.service", ENGINE)),
    )
    wanted = wanted_of({"h1": steps})
    plan = make_plan(wanted, observe(fleet_of(["h1"]), wanted))
    assert [op.verb for op in batch(plan.changes).ops] == ["put", "units", "command", "put", "units"]
