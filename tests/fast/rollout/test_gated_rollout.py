"""A rollout with a gate on hosts as tables: what is worse goes back, however often the run is killed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from approvers import Approver
from fake_clock import FakeClock
from moving_tables import MovingTable, Watched
from routed_tables import routed_tables
from table_fleet import Killed, quiet

from launcher.flows.bench_run import OTHERS, Record
from launcher.flows.gated import gated_upgrade
from launcher.flows.load_gate import LoadGate
from launcher.flows.revisions import recall
from launcher.flows.up import Result, up
from launcher.load.bench import read_method
from launcher.load.data import Data, shipped
from launcher.model.facts import Probe
from launcher.model.job import FOLDER
from launcher.model.plan import Op
from launcher.model.problem import InputError
from launcher.model.revision import Entry
from launcher.model.run import RunRecord
from launcher.model.sla import Workload
from launcher.model.telemetry import Telemetry
from launcher.model.wish import Wanted
from launcher.rollout.planning import Goal, plan
from launcher.rollout.run import Run
from launcher.rollout.situation import Options

OPTIONS = Options(keeps_minimum=True, idle_within_s=5.0)
METHOD = read_method(Data((shipped(),)))
LOAD = Workload("load", "A load.", 128, 32, 16, (2,), settings={"dataset-name": "random"})
EVERY = 17
"""Ops from one kill to the next."""
FORTH, AGAIN = "20261129T180000Z-upgrade", "20261129T190000Z-upgrade"


@dataclass
class ClientTable(MovingTable):
    """A host on which a client runs, too: its job is over at once."""

    def answer(self, probe: Probe) -> Any:
        if probe == OTHERS:
            return {"exit": 0, "stdout": ""}
        known = {"job": {"state": "absent"}, "host": {"time": 0.0}}
        return known.get(probe.kind) or super().answer(probe)

    def do(self, op: Op) -> None:
        job = str(op.args.get("name", op.args.get("stop", ""))).find("bench-") >= 0
        if op.verb == "remove" and op.args["path"].startswith(FOLDER):
            gone = f"{op.args['path']}/"
            self.paths = {path: file for path, file in self.paths.items() if not path.startswith(gone)}
        elif not job:
            super().do(op)


@dataclass
class Loaded(Watched):
    """Hosts whose service bears a load as its environment does."""

    ttft_ms: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Environment → of each run in turn, by its seed."""
    lost: dict[str, int] = field(default_factory=dict)
    """Environment → requests of a run that fail."""
    measured: list[str] = field(default_factory=list)
    """The environments that got a load, in order."""

    def do(self, host: str, ops: Any, **words: Any) -> Any:
        done = super().do(host, ops, **words)
        for op in ops[: done.failed_index]:
            if op.verb == "job":
                self.client(host, op.args["words"][-1])
        return done

    def client(self, host: str, folder: str) -> None:
        """What it leaves in its folder."""
        (environment,) = self.environments()
        self.measured.append(environment)
        table: Any = self.tables[host]
        spec = json.loads(table.paths[f"{folder}/spec.json"].content)
        seed = int(spec["words"][spec["words"].index("--seed") + 1])
        ttft_ms = self.ttft_ms[environment][seed - 1]
        completed = 16 - self.lost.get(environment, 0)
        result = {"num_prompts": 16, "completed": completed, "total_output_tokens": 512, "duration": 2.0}
        result |= {"mean_ttft_ms": ttft_ms, "mean_tpot_ms": 10.0, "mean_e2el_ms": 400 + ttft_ms}
        pages = dict.fromkeys(spec["pages"], 'vllm:prompt_tokens_total{engine="0"} 1\n')
        told = {"status": 0, "cpu_percent": 5.0, "before": pages, "after": pages, "looks": []}
        for name, content in (("result", result), ("told", told)):
            text = json.dumps(content).encode()
            table.do(Op("put", {"path": f"{folder}/{name}.json"}, text))


@pytest.fixture
def start(before: Wanted) -> Loaded:
    """All of it up, and what is wanted next three times as slow."""
    made = routed_tables(before)
    fleet = Loaded({h: ClientTable(**vars(t)) for h, t in made.tables.items()})
    fleet.ttft_ms = {"stub-routed": (50.0, 51.0, 52.0), "stub-next": (150.0, 151.0, 152.0)}
    options = replace(OPTIONS, below_minimum=True)
    up(fleet, Goal(before, frozenset(before.steps), options), Approver(), run("20261129T17-up", "up"))
    fleet.log.clear()
    fleet.told.clear()
    fleet.watching = True
    return fleet


def run(name: str, flow: str = "upgrade") -> Run:
    now = "2026-11-29T18:05:00Z"
    return Run(name, quiet, lambda *_: "", lambda: False, "ana", now, "why", FakeClock(), flow)


@dataclass
class Upgrade:
    """The command, as far as its flow goes."""

    before: Wanted
    after: Wanted
    folder: Path
    shown: list[str] = field(default_factory=list)

    def __call__(self, fleet: Loaded, name: str = FORTH) -> Result:
        record = Record(quiet, lambda kept, _: kept, lambda: False)
        about = RunRecord(name, "upgrade", "stub", "ana", "desk", ("upgrade",), {}, "d" * 64, "2026-11-29")
        kept = {"DSV32_BASELINES": str(self.folder)}
        gate = LoadGate(LOAD, None, METHOD, Telemetry(1.0, 4, {}), record, about, kept)

        approver = Approver()
        result = gated_upgrade(fleet, self.goal, gate, approver, run(name))
        self.shown += [line for proposal in approver.shown for line in proposal.remarks]
        return result

    @property
    def goal(self) -> Goal:
        return Goal(self.after, frozenset(self.after.steps), OPTIONS, before=self.before)


@pytest.fixture
def upgrade(before: Wanted, after: Wanted, tmp_path: Path) -> Upgrade:
    return Upgrade(before, after, tmp_path / "baselines")


def last(fleet: Loaded) -> Entry:
    return recall(fleet, fleet.tables)[0][-1]


def findings(result: Result) -> list[str]:
    return [f"{f.subject}: {f.text}" for f in result.findings]


def test_what_is_worse_goes_back_and_is_remembered_as_bad(start: Loaded, upgrade: Upgrade) -> None:
    result = upgrade(start)
    (worse,) = result.worse
    assert (result.verdict, result.problems) == ("FAIL", ())
    assert worse.what.startswith("gate: concurrency 2: ttft_ms mean 51.00 → 151.00, 196.1 % worse")
    assert start.measured == ["stub-routed"] * 3 + ["stub-next"] * 3
    assert start.always_served()
    assert start.environments() == {"stub-routed"}
    assert not plan(start, upgrade.before)
    assert (last(start).result, last(start).fault) == ("bad", worse.what.removeprefix("gate: ")[:100])
    assert findings(result)[-1] == "rollout: what was before serves again"
    assert upgrade.shown[0] == "gate: load now, 3 times at each point, and once all has moved"

    start.ttft_ms["stub-next"] = (50.0, 51.0, 52.0)
    upgrade.shown.clear()
    better = upgrade(start, AGAIN)
    assert upgrade.shown[0].startswith(f"{FORTH} went there, and back: concurrency 2: ttft_ms")
    assert upgrade.shown[1].endswith(f"against the baseline that {FORTH} measured")
    assert start.measured[6:] == ["stub-next"] * 3, "its baseline was kept"
    assert (better.verdict, better.problems, last(start).result) == ("PASS", (), "good")
    assert findings(better)[-1] == f"gate: PASS against {FORTH}"


@pytest.mark.parametrize(
    ("ttft_ms", "lost", "verdict", "said"),
    [
        ((54.0, 90.0, 20.0), 0, "PASS", ""),
        ((60.0, 90.0, 20.0), 0, "CANNOT TELL", ""),
        ((60.0, 61.0, 62.0), 0, "FAIL", "ttft_ms mean 51.00 → 61.00"),
        ((20.0, 21.0, 22.0), 3, "FAIL", "9 of 48 requests failed, and none before"),
    ],
)
def test_what_runs_differ_by_sends_nobody_back_and_lost_requests_do(
    start: Loaded, upgrade: Upgrade, ttft_ms: tuple[float, ...], lost: int, verdict: str, said: str
) -> None:
    start.ttft_ms["stub-next"], start.lost["stub-next"] = ttft_ms, lost
    result = upgrade(start)
    assert result.verdict == verdict
    assert said in "".join(p.what for p in result.worse)
    assert start.environments() == {"stub-routed" if verdict == "FAIL" else "stub-next"}


def test_what_nobody_can_judge_stays(start: Loaded, upgrade: Upgrade) -> None:
    start.broken = lambda _, op: op.verb == "job" and start.environments() == {"stub-next"}
    result = upgrade(start)
    assert (result.verdict, result.problems, result.worse) == ("CANNOT TELL", (), ())
    assert findings(result)[-1] == "gate: CANNOT TELL, and it stays: disk is full"
    assert start.environments() == {"stub-next"}
    assert last(start).result == "good"


def test_nothing_moves_without_a_baseline_to_be_held_against(start: Loaded, upgrade: Upgrade) -> None:
    start.lost["stub-routed"] = 1
    with pytest.raises(InputError, match="no baseline: concurrency 2: 1 of 16 requests failed"):
        upgrade(start)
    assert {what.split()[0] for _, what in start.log} == {"ask", "put", "job", "units", "remove"}
    assert all(what.split()[1].startswith(f"{FOLDER}/bench-") for _, what in start.log if "remove" in what)
    assert not start.told, "no unit, and nothing that is drained"


def kills(ops: int) -> Iterable[int]:
    return range(1, ops, EVERY)


def test_killed_at_any_op_and_given_again(start: Loaded, upgrade: Upgrade) -> None:
    """Whatever was done until then, the same command comes to the same end, and users do not notice."""
    whole = deepcopy(start)
    upgrade(whole)
    ops = sum(1 for _, what in whole.log if what != "ask")
    for number in kills(ops):
        fleet = deepcopy(start)
        fleet.ops_left = number
        with pytest.raises(Killed):
            replace(upgrade, folder=upgrade.folder / str(number))(fleet)
        fleet.ops_left = None
        result = replace(upgrade, folder=upgrade.folder / str(number))(fleet, AGAIN)
        assert (result.verdict, result.problems) == ("FAIL", ()), number
        assert fleet.always_served(), number
        assert not plan(fleet, upgrade.before), number
        assert (last(fleet).result, bool(last(fleet).fault)) == ("bad", True), number


def test_no_baseline_of_what_has_moved(start: Loaded, upgrade: Upgrade) -> None:
    """Begun without a gate and killed: what runs is not what was before."""
    start.ops_left = 60
    with pytest.raises(Killed):
        up(start, upgrade.goal, Approver(), run(FORTH))
    start.ops_left = None
    start.log.clear()
    with pytest.raises(
        InputError, match="there is no baseline of load, and what runs is not what was before"
    ):
        upgrade(start, AGAIN)
    assert {what for _, what in start.log} == {"ask"}, "nothing was changed"
