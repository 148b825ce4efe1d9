"""configs/drills: every runbook has one, and each can be planted, seen and ended as it is written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from samples import ROOT

from launcher.load.data import Data, shipped
from launcher.load.drills import read_drills, read_stand_ins
from launcher.load.runbooks import read_runbooks
from launcher.load.signatures import read_log_knowledge
from launcher.model.drill import Act, Drill
from launcher.model.problem import InputError

DATA = Data((shipped(),))
BOOKS = read_runbooks(DATA)
DRILLS = read_drills(DATA)
STAND_INS = read_stand_ins(DATA)
# the failure matrix that is called for: what is broken, and how
MATRIX = {
    *("engine-killed", "engine-core-killed", "engine-hangs", "guard-killed", "router-killed"),
    *("host-frozen", "host-cut", "host-rebooted", "power-loss"),
}


def acts(drill: Drill) -> tuple[Act, ...]:
    return (*drill.plant, *drill.lift)


def test_every_runbook_is_drilled() -> None:
    assert BOOKS.keys() - {d.runbook for d in DRILLS.values()} == set()


def test_the_failure_matrix_ends_by_itself() -> None:
    assert {name for name in MATRIX if DRILLS[name].runbook} == set()


@pytest.mark.parametrize("drill", DRILLS.values(), ids=lambda d: d.id)
def test_a_drill_leads_to_its_runbook(drill: Drill) -> None:
    """What `diagnose` must name is what the runbook is for, so that a person would have come to it."""
    if drill.diagnose:
        assert drill.diagnose in BOOKS[drill.runbook].signatures
    signatures = {s.id: s for s in read_log_knowledge(DATA).signatures}
    said = "\n".join(line for act in drill.plant for line in (*act.kernel, *act.says))
    if drill.diagnose and said:
        assert any(re.search(p, said) for p in signatures[drill.diagnose].patterns), "another line is planted"


@pytest.mark.parametrize("drill", DRILLS.values(), ids=lambda d: d.id)
def test_hardware_that_a_runbook_looks_at_stands_in(drill: Drill) -> None:
    """Every question that the runbook asks of hardware is one that a stand-in was told the answer to."""
    asked = [step.on_host.run for step in BOOKS[drill.runbook].steps if step.on_host] if drill.runbook else []
    known = [STAND_INS[act.stand_in] for act in acts(drill) if act.stand_in]
    programs = {p: set(answers) for s in STAND_INS.values() for p, answers in s.programs.items()}
    for run in asked:
        if run[0] in programs:
            assert known, f"{drill.id} puts no stand-in for {run[0]}"
            assert " ".join(run[1:]) in known[0].programs[run[0]], run


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("plant: [{signal: KILL, power: 'off'}]", "this one has signal and power"),
        ("plant: [{says: ['{{rank}}']}]", "`{{rank}}` names nothing here"),
        ("plant: [{signal: KILL}]\ndiagnose: killd", "`diagnose` is `killd`, which is no signature"),
        ("plant: [{signal: KILL}]\nrunbook: gpu", "`runbook` is `gpu`, which is no runbook"),
        ("plant: [{signal: KILL}]\nrunbook: gpu-xid\nlift_at: 4", "that step of gpu-xid is not done by hand"),
        ("plant: [{power: freeze}]\nlift: [{power: thaw}]", "nothing says when it is lifted"),
    ],
)
def test_what_is_wrong_with_a_drill_is_said(tmp_path: Path, text: str, what: str) -> None:
    folder = tmp_path / "configs/drills"
    folder.mkdir(parents=True)
    head = "title: x\nspot: leader\nmay_fail: none\nwhole_within_s: 9\n"
    (folder / "broken.yaml").write_text(head + text + "\n")
    with pytest.raises(InputError) as raised:
        read_drills(Data((folder.parents[1], ROOT)))
    assert any(what in p.what and "broken.yaml" in p.where for p in raised.value.problems), str(raised.value)
