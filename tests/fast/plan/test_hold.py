"""Who may change a fleet, and who did: holds, and what hosts remember."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_wanted import HOSTS, wanted_of
from table_fleet import Path as Kept
from table_fleet import fleet_of, quiet

from launcher.flows import audit, hold
from launcher.model.facts import Unknown
from launcher.model.hold import PATH, Hold, hold_in, hold_text
from launcher.model.problem import InputError, LockedError, Problem
from launcher.model.run import Event
from launcher.record import open_journal
from launcher.rollout.planning import plan

NOW = "2026-11-29T18:05:00Z"
ANA = Hold("ana", "jump1", NOW, "a new fan in gpu03")


def test_a_hold_is_on_every_host_until_it_is_given_up() -> None:
    fleet = fleet_of(HOSTS)
    assert hold.hold(fleet, HOSTS, ANA, quiet) == ()
    assert {hold_in(t.read(PATH, 4096)) for t in fleet.tables.values()} == {ANA}
    renewed = Hold("ana", "jump1", NOW, "and another one", until="2026-11-29T19:05:00Z")
    assert hold.hold(fleet, HOSTS, renewed, quiet) == ()
    assert hold.give_up(fleet, HOSTS, "ana", NOW, quiet, force=False) == ((renewed,), ())
    assert hold.give_up(fleet, HOSTS, "ana", NOW, quiet, force=False) == ((), ())
    assert not any(PATH in t.paths for t in fleet.tables.values())


def test_what_somebody_else_holds_is_left_as_it_is() -> None:
    fleet = fleet_of(HOSTS)
    hold.hold(fleet, ["h3"], ANA, quiet)
    fleet.log.clear()
    with pytest.raises(LockedError, match="held by ana on jump1"):
        hold.hold(fleet, HOSTS, Hold("bob", "jump1", NOW, "mine"), quiet)
    with pytest.raises(LockedError, match="h3"):
        hold.give_up(fleet, HOSTS, "bob", NOW, quiet, force=False)
    assert {what for _, what in fleet.log} == {"ask"}
    assert hold.give_up(fleet, HOSTS, "bob", NOW, quiet, force=True) == ((ANA,), ())


def test_of_two_at_the_same_moment_one_is_told() -> None:
    fleet = fleet_of(["h1"])
    bob = Kept("file", "0644", "root", "root", hold_text(Hold("bob", "jump2", NOW, "mine")).encode())
    asked: list[str] = []

    def bob_was_faster(host: str) -> None:
        asked.append(host)
        if len(asked) == 2:
            fleet.tables[host].paths[PATH] = bob

    fleet.before = bob_was_faster
    with pytest.raises(LockedError, match="held by bob"):
        hold.hold(fleet, ["h1"], ANA, quiet)


def test_a_host_that_does_not_answer_is_told_of_and_the_others_are_held() -> None:
    fleet = fleet_of(HOSTS)
    fleet.unreached = {"h2"}
    (problem,) = hold.hold(fleet, HOSTS, ANA, quiet)
    assert problem.where == "h2"
    assert [h for h, t in fleet.tables.items() if PATH not in t.paths] == ["h2"]


def test_a_hold_ends_by_itself_and_a_broken_one_does_not() -> None:
    lent = Hold("ana", "jump1", NOW, "x", until="2026-11-29T19:05:00Z")
    assert lent.keeps_out("bob", "2026-11-29T19:04:59Z")
    assert not lent.keeps_out("bob", "2026-11-29T19:05:00Z")
    assert not lent.keeps_out("ana", NOW)
    for text in ("", "{", "[]", "{}", '{"who": "ana", "more": 1}'):
        broken = hold_in({"text": text})
        assert broken is not None
        assert broken.keeps_out("ana", NOW), text
    assert hold_in({"absent": True}) is None
    assert hold_in(Unknown("permission denied")) is None


def test_a_plan_tells_of_a_hold_and_is_the_same_plan() -> None:
    fleet, wanted = fleet_of(HOSTS), wanted_of()
    before = plan(fleet, wanted)
    hold.hold(fleet, HOSTS, ANA, quiet)
    asked = len(fleet.log)
    after = plan(fleet, wanted)
    assert len(fleet.log) - asked == len(HOSTS), "one question a host"
    assert (before.holds, after.holds) == ((), (ANA,))
    assert before.digest == after.digest


@pytest.mark.parametrize("text", ["", "2", "0h", "2 h", "-1h", "1w", "9999999h"])
def test_a_length_of_time_is_one(text: str) -> None:
    assert hold.seconds_in("90m") == 5400
    with pytest.raises(InputError, match="no length of time"):
        hold.seconds_in(text)


def line(result: str, target: str = "/etc/a", **more: object) -> str:
    told = {"time": 100.0, "who": "ana", "run": "r1", "from": "jump1", "op": "put", "target": target}
    return json.dumps({**told, "result": result, **more})


def test_what_a_host_remembers_is_one_deed_an_op() -> None:
    error = {"text": "disk is full", "errno": 28, "exit": None}
    half = line("done")[30:]
    text = "\n".join(
        (
            half,
            line("begun"),
            line("done"),
            line("begun", "/b"),
            line("failed", "/b", error=error),
            line("begun"),
        )
    )
    deeds = list(audit.deeds_in("h1", text))
    assert [(d.target, d.result) for d in deeds] == [
        ("/etc/a", "done"),
        ("/b", "failed: disk is full"),
        ("/etc/a", "begun"),
    ]


def test_runs_of_this_controller_and_of_others_are_one_story(tmp_path: Path) -> None:
    journal = open_journal(
        tmp_path, flow="up", cluster="small", argv=["up"], data_digest="d", why="a new stack"
    )
    journal(Event("change-done", "x", "h1"))
    journal.end(1, [Problem("disk is full")])
    own = journal.run.id
    text = "\n".join((line("begun"), line("done"), line("begun", run=own), line("failed", run=own)))
    deeds = list(audit.deeds_in("h1", text))
    other, mine = audit.by_run(deeds, {"DSV32_RUNS": str(tmp_path)}, cluster="small")
    assert (other.run, other.who, other.result, other.done, other.failed) == ("r1", "ana", "", {"h1": 1}, {})
    assert (mine.run, mine.command, mine.result, mine.why) == (own, "up", "exit 1", "a new stack")
    assert (mine.done, mine.failed) == ({}, {"h1": 1})
