"""What a plan shows is what is done: its moves, in their order, or nothing at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import pytest
from approvers import Approver
from fake_clock import FakeClock
from hypothesis import given, settings
from hypothesis import strategies as st
from moving_tables import MovingTable, Watched, known, next_of
from routed_tables import SEATS, routed_tables, routed_wanted
from table_fleet import UNITS, quiet

from launcher.flows.preflight import Report
from launcher.flows.restart import named_by, restart, restart_goal
from launcher.flows.up import Result, up
from launcher.model.deployment import Drained, DrainedBy
from launcher.model.plan import Plan
from launcher.model.problem import PlanRefusedError
from launcher.model.revision import FOLDER
from launcher.model.rollout import Move
from launcher.model.run import Event
from launcher.model.wish import Wanted
from launcher.record.plans import plan_document
from launcher.resolve import resolve
from launcher.rollout.planning import Goal, Proposal, propose, propose_restart
from launcher.rollout.run import Run
from launcher.rollout.service import with_drained
from launcher.rollout.situation import Options
from launcher.rollout.traffic import switch

DRAINED = "/etc/dsv32/drained.json"
ENGINES = {f"dsv32-{name}.service": name for name in SEATS.values()}
FAULTS = ("engine down", "unit gone", "other text", "router down", "host silent")


@dataclass
class Done:
    """What hosts were told during one move."""

    number: int
    hosts: set[str] = field(default_factory=set)
    """Those that were changed; a host that routes is told, too, whom to leave out."""
    instances: set[str] = field(default_factory=set)
    """Those that were started, restarted or stopped."""
    drained: set[str] = field(default_factory=set)
    """Those that got no requests while anything of the above happened."""


@dataclass
class Noted(Watched):
    """Notes what each move does."""

    done: list[Done] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        if event.kind == "move-started":
            self.done.append(Done(event.data["number"]))

    def do(self, host: str, ops: Any, **words: Any) -> Any:
        for op in ops if self.done else ():
            now = self.done[-1]
            if op.args.get("instance") in SEATS.values():
                self.life(now, {op.args["instance"]}, host)
            elif op.verb == "units":
                named = {n for verb in ("start", "restart", "stop") for n in op.args.get(verb, ())}
                self.life(now, {ENGINES[n] for n in named & ENGINES.keys()}, host)
            if host != "h04" and not op.args.get("path", "").startswith(FOLDER):
                now.hosts.add(host)
        return super().do(host, ops, **words)

    def life(self, now: Done, instances: set[str], host: str) -> None:
        if instances:
            kept = self.tables["h04"].paths.get(DRAINED)
            now.instances |= instances
            now.drained |= {d["instance"] for d in json.loads(kept.content)} if kept else set()


class Fleets:
    """Where all runs as it was wanted before; what is wanted next; and the same with one more setting.

    No dataclass: a failure would print megabytes of it.
    """

    def __init__(self, start: Noted, before: Wanted, after: Wanted, other: Wanted) -> None:
        self.start, self.before, self.after, self.other = start, before, after, other


@pytest.fixture(scope="module", autouse=True)
def only_known() -> Iterator[None]:
    """Whatever is resolved anew is of kinds that tables know."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("launcher.rollout.service.resolve", lambda *told: known(resolve(*told)))
        yield


@pytest.fixture(scope="module")
def fleets(tmp_path_factory: pytest.TempPathFactory) -> Fleets:
    folder = tmp_path_factory.mktemp("moves")
    before = known(routed_wanted(folder))
    after = next_of(folder)
    other = known(routed_wanted(folder, settings={"all": {"max-num-seqs": 17}}))
    made = routed_tables(before)
    start = Noted({h: MovingTable(**vars(t)) for h, t in made.tables.items()})
    wanted = Goal(before, frozenset(before.steps), Options(below_minimum=True))
    assert not up(start, wanted, Approver(), a_run(quiet)).problems
    start.log.clear()
    return Fleets(start, before, after, other)


def a_run(listener: Callable[[Event], None]) -> Run:
    now = "2026-11-29T18:05:00Z"
    return Run("r1", listener, lambda *_: "", lambda: False, "ana", now, "why", FakeClock(), "up")


class Dry(Approver):
    """Approves nothing, as `--dry-run`."""

    def agrees(self, proposal: Proposal) -> bool:
        return False


@dataclass
class Planned(Approver):
    """Approves what equals the plan that it was given."""

    plan: Plan | None = None

    def show(self, proposal: Proposal, report: Report) -> None:
        super().show(proposal, report)
        assert self.plan is not None
        assert proposal.plan.digest == self.plan.digest


COMMANDS = st.sampled_from(["up after", "up other", "up before", "upgrade", "restart"])
TARGETS = st.sampled_from(["prefill-0", "decode-1", "decode", "prefill", "router", "all", "h04"])
OPTIONS = st.builds(
    Options,
    below_minimum=st.booleans(),
    keeps_minimum=st.booleans(),
    reboots=st.booleans(),
    needs_all=st.booleans(),
    order=st.sampled_from(["rolling", "canary", "at-once"]),
    idle_within_s=st.just(5.0),
)
ASIDE = st.none() | st.tuples(st.sampled_from(sorted(SEATS.values())), st.sampled_from(get_args(DrainedBy)))
TROUBLES = st.lists(st.tuples(st.sampled_from(sorted(SEATS)), st.sampled_from(FAULTS)), max_size=2)


def trouble(fleet: Noted, host: str, fault: str) -> None:
    table = fleet.tables[host]
    unit = f"dsv32-{SEATS[host]}.service"
    match fault:
        case "engine down":
            table.units[unit].active = "failed"
        case "unit gone":  # which systemd refuses to start, and tables do not know
            table.paths.pop(UNITS + unit, None)
        case "other text":
            have = table.paths.get(UNITS + unit)
            if have:
                table.paths[UNITS + unit] = replace(have, content=have.content + b"\n# by hand\n")
        case "router down" if host == "h04":
            for slot in "ab":
                table.units[f"dsv32-router-{slot}.service"].active = "failed"
        case "host silent":
            fleet.unreached.add(host)


def asked_of(
    fleets: Fleets, command: str, target: str, options: Options
) -> tuple[Callable[[Noted], Plan], Callable[[Noted, Approver, Run], Result]]:
    """The command's plan, and the command."""
    if command == "restart":
        assert fleets.before.deployment
        what = named_by(fleets.before.deployment, target)
        goal = restart_goal(fleets.before, what, options)
        return (
            lambda fleet: propose_restart(fleet, goal, what.instances, what.routers).plan,
            lambda fleet, approver, run: restart(fleet, goal, what, approver, run),
        )
    wanted: Wanted = getattr(fleets, "after" if command == "upgrade" else command.split()[1])
    goal = Goal(
        wanted, frozenset(wanted.steps), options, before=fleets.before if command == "upgrade" else None
    )
    return (
        lambda fleet: propose(fleet, goal).plan,
        lambda fleet, approver, run: up(fleet, goal, approver, run, go_back_on_failure=command == "upgrade"),
    )


@settings(max_examples=40, deadline=None)
@given(COMMANDS, TARGETS, OPTIONS, TROUBLES, ASIDE)
def test_moves_are_made_as_planned_and_refused_as_planned(
    fleets: Fleets,
    command: str,
    target: str,
    options: Options,
    troubles: list[tuple[str, str]],
    aside: tuple[str, DrainedBy] | None,
) -> None:
    fleet = deepcopy(fleets.start)
    if aside:
        drained = Drained(aside[0], "ana", "2026-11-29T18:05:00Z", "a fan", aside[1])
        switch(fleet, with_drained(fleets.before, (drained,)), a_run(quiet))
        fleet.log.clear()
    for host, fault in troubles:
        if not (command == "restart" and fault == "unit gone"):
            trouble(fleet, host, fault)
    planned, run = asked_of(fleets, command, target, options)
    plan = planned(fleet)
    everything_is_made(plan)
    assert {what for _, what in fleet.log} <= {"ask"}, "a plan changes nothing"
    fleet.log.clear()
    if plan.rollout.refused:
        with pytest.raises(PlanRefusedError) as caught:
            run(fleet, Planned(plan=plan), a_run(fleet))
        assert caught.value.problems == plan.rollout.refused
        assert {what for _, what in fleet.log} <= {"ask"}, "what is refused changes nothing"
        return
    result = run(fleet, Planned(plan=plan), a_run(fleet))
    moves = plan.rollout.moves
    numbers = [done.number for done in fleet.done if done.number < len(moves)]
    if not result.problems:
        assert numbers == list(range(len(moves)))
    assert numbers == sorted(numbers)
    if command != "upgrade":  # which goes back by a plan of its own
        for done in fleet.done:
            as_planned(moves[done.number], done, plan)
    documented = json.loads(json.dumps(plan_document(plan)))["rollout"]["moves"]
    assert [tuple(m["instances"]) for m in documented] == [m.instances for m in moves]


def everything_is_made(plan: Plan) -> None:
    """Each change belongs to a move."""
    for change in plan.changes:
        moves = plan.rollout.moves
        assert any(m.makes(change.host, change.stage, change.instance) for m in moves), change


def as_planned(move: Move, done: Done, plan: Plan) -> None:
    assert done.hosts <= set(move.hosts), "no other host was changed"
    assert done.instances <= set(move.instances), "no other instance was started or stopped"
    if done.instances:
        assert done.drained >= set(move.drained), "they got no requests"


def test_what_does_not_answer_gets_no_requests_and_the_rest_goes_on(fleets: Fleets) -> None:
    """Routers change at the end of this plan, too; they go on leaving it out."""
    fleet = deepcopy(fleets.start)
    fleet.tables["h02"].dumb = True  # type: ignore[attr-defined]
    goal = Goal(fleets.other, frozenset(fleets.other.steps))
    trouble(fleet, "h04", "router down")
    result = up(fleet, goal, Approver(), a_run(fleet))
    assert "status 500" in result.problems[0].what
    assert fleet.reached().keys() == {"prefill-1", "decode-1"}
    assert "decode-1 is not restarted" in " ".join(p.what for p in result.problems)
    assert not {"decode-1", "prefill-1"} & {name for done in fleet.done for name in done.instances}


def test_a_fleet_that_has_changed_since_is_another_plan(fleets: Fleets) -> None:
    """Its facts are the same, and only what serves differs: the order is another one."""
    goal = Goal(fleets.other, frozenset(fleets.other.steps))
    fleet = deepcopy(fleets.start)
    first = propose(fleet, goal).plan
    trouble(fleet, "h02", "engine down")
    second = propose(fleet, goal).plan
    assert first.rollout.moves != second.rollout.moves
    assert first.digest != second.digest


def test_nothing_is_done_unless_it_is_approved(fleets: Fleets, tmp_path: Path) -> None:
    fleet = deepcopy(fleets.start)
    result = up(fleet, Goal(fleets.after, frozenset(fleets.after.steps)), Dry(), a_run(fleet))
    assert result.outcome is None
    assert result.plan.rollout.strategy == "halves"
    assert {what for _, what in fleet.log} == {"ask"}
