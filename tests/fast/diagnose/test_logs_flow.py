"""What `logs` keeps of journals, and in which order; and what a line says that it is worth."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import pytest
from fake_clock import FakeClock

from launcher.flows.logs import PRIORITIES, Selection, follow, picked
from launcher.flows.targets import Unit
from launcher.health.marks import Marks
from launcher.load.data import Data, shipped
from launcher.load.signatures import read_log_knowledge
from launcher.model.facts import Facts, Probe
from launcher.model.problem import InputError, Problem

MARKS = Marks(read_log_knowledge(Data((shipped(),))).forms)
ENGINE = Unit("h1", "dsv32-decode-0.service", "decode-0")
GUARD = Unit("h1", "dsv32-guard-decode-0.service", "decode-0", guards=True)
INFO = "(APIServer pid=1) INFO 11-29 18:00:00 [a.py:1] hello"
ERROR = "(APIServer pid=1) ERROR 11-29 18:00:00 [a.py:1] no"


@dataclass
class Journals:
    """Hosts that answer `journal` as the agent does; `later` is what each unit says before each next look."""

    told: dict[str, list[tuple[float, str, int]]]
    later: list[dict[str, list[tuple[float, str, int]]]] = field(default_factory=list)

    def ask(
        self, questions: Mapping[str, Sequence[Probe]], *, within_s: float
    ) -> Mapping[str, Facts | Problem]:
        answers = {
            host: Facts(host, {p: self._answer(*p.args) for p in probes})
            for host, probes in questions.items()
        }
        for unit, lines in (self.later.pop(0) if self.later else {}).items():
            self.told.setdefault(unit, []).extend(lines)
        return answers

    def _answer(self, unit: str, invocation: str, lines: int, after: str) -> dict[str, object]:
        told = list(enumerate(self.told.get(unit, []), 1))
        if after.startswith("@"):
            told = [(n, line) for n, line in told if line[0] >= float(after[1:])]
        kept = told[:lines] if after == "start" else told[-lines:]
        if after and after != "start" and not after.startswith("@"):
            kept = [(n, line) for n, line in told if n > int(after)][:lines]
        entries = [{"time": t, "message": text, "priority": p, "pid": 1} for _, (t, text, p) in kept]
        return {"entries": entries, "cursor": str(kept[-1][0]) if kept else after}

    def do(self, *words: object, **more: object) -> None:
        raise AssertionError("logs changes nothing")


def texts(fleet: Journals, wanted: Selection, looks: int = 1) -> list[str]:
    found = islice(follow(fleet, (ENGINE, GUARD), wanted, MARKS, clock=FakeClock()), looks)
    return [entry.text for look in found for entry in look.entries]


def test_an_instance_and_its_guards_are_one_story() -> None:
    fleet = Journals(
        {
            ENGINE.name: [(10, "Main process exited", 5), (20, INFO, 6)],
            GUARD.name: [
                (11, "epoch 2 is over: h1: its process was killed by signal 9", 4),
                (15, "starts epoch 3", 6),
            ],
        }
    )
    told = texts(fleet, Selection(100))
    assert told == ["Main process exited", fleet.told[GUARD.name][0][1], "starts epoch 3", INFO]
    assert texts(fleet, Selection(1)) == ["starts epoch 3", INFO]


def test_the_last_lines_are_the_last_of_those_that_are_asked_for() -> None:
    fleet = Journals({ENGINE.name: [(n, ERROR if n == 3 else INFO, 6) for n in range(1, 1000)]})
    assert texts(fleet, Selection(1, grep=re.compile("ERROR"))) == [ERROR]
    assert texts(fleet, Selection(5, priority="err")) == [ERROR]
    assert texts(fleet, Selection(9, since_s=998)) == [INFO, INFO]
    assert texts(fleet, Selection(9, until_s=3)) == [INFO, INFO, ERROR]


@pytest.mark.parametrize("lines", [0, 1, 100])
def test_each_new_line_comes_once_also_of_a_unit_that_had_said_nothing(lines: int) -> None:
    new = [(float(n), f"line {n}", 6) for n in range(1, 8)]
    fleet = Journals(
        {}, [{ENGINE.name: new[:3]}, {ENGINE.name: new[3:], GUARD.name: [(9, "starts epoch 1", 6)]}]
    )
    assert texts(fleet, Selection(lines), looks=4) == [*(text for _, text, _ in new), "starts epoch 1"]


@pytest.mark.parametrize(
    ("text", "journal", "priority"),
    [
        (ERROR, 6, "err"),
        (INFO, 6, "info"),
        ("(Worker pid=1) WARNING 11-29 18:00:00 [a.py:1] ERROR quoted", 6, "warning"),
        ("gives up after 3 tries", 2, "crit"),
        ("ValueError: no", 6, "err"),
        ("2026-11-29 16:20:51 ERROR vllm_router_rs::server: no", 6, "err"),
        ("2026-11-29 16:20:51  INFO vllm_router_rs::server: yes", 6, "info"),
        ("[ALERT]    (812) : backend 'routers' has no server available!", 6, "err"),
        ("gpu05:9:9 [0] bootstrap.cc:45 NCCL WARN no interface", 6, "err"),
        ("Started dsv32-decode-0.service", 6, "info"),
    ],
)
def test_a_line_is_as_grave_as_its_program_or_the_journal_says(
    text: str, journal: int, priority: str
) -> None:
    found = next(follow(Journals({ENGINE.name: [(1.0, text, journal)]}), (ENGINE,), Selection(9), MARKS))
    assert [entry.priority for entry in found.entries] == [priority]
    assert PRIORITIES.index(found.entries[0].priority) <= journal


def test_units_are_picked_by_a_word_of_their_name() -> None:
    assert picked((ENGINE, GUARD), "guard", kernel=False) == (GUARD,)
    assert [u.name for u in picked((ENGINE, GUARD), "", kernel=True)] == [ENGINE.name, GUARD.name, "kernel"]
    with pytest.raises(InputError, match="`router`"):
        picked((ENGINE, GUARD), "router", kernel=False)
