"""The run folder: complete, readable after a kill, and without any secret."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from small_wanted import HOSTS, step, steps_of, wanted_of
from table_fleet import fleet_of

from launcher.execute import apply
from launcher.flows.runs import list_runs, show_run
from launcher.model.problem import InputError, Problem
from launcher.model.run import Event
from launcher.model.secret import Secret
from launcher.record import Journal, open_journal
from launcher.rollout.planning import plan
from launcher.steps import file

CANARY = 'hun"ter2\\x'


def journal_in(runs: Path, flow: str = "up") -> Journal:
    return open_journal(
        runs,
        flow=flow,
        cluster="small",
        argv=["up", "inventory.yaml"],
        data_digest="d" * 64,
        secrets=[Secret("api_key", CANARY)],
    )


def texts_of(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


def test_a_run_leaves_its_plan_events_logs_result_and_report(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    wanted, fleet = wanted_of(), fleet_of(HOSTS)
    fleet.broken = lambda host, op: host == "h4" and op.verb == "folder"
    planned = plan(fleet, wanted)
    journal.plan(planned)
    outcome = apply(fleet, wanted, planned, journal, await_ready=lambda i: None)
    saved = journal.save_log("h4", "dsv32-decode-1.service", "line\n")
    journal.end(outcome.exit_code, outcome.problems)

    texts = texts_of(journal.folder)
    assert set(texts) == {"run.json", "plan.json", "events.jsonl", "report.md", "hosts/h4/dsv32-decode-1.log"}
    assert saved == str(journal.folder / "hosts/h4/dsv32-decode-1.log")
    run = json.loads(texts["run.json"])
    assert (run["format"], run["exit_code"], run["argv"]) == (2, 1, ["up", "inventory.yaml"])
    assert [p["where"] for p in run["problems"]] == ["h4, step base/folder", "h4"]
    assert json.loads(texts["plan.json"])["digest"] == planned.digest
    events = [json.loads(line) for line in texts["events.jsonl"].splitlines()]
    assert {e["format"] for e in events} == {2}
    assert sum(e["kind"] == "change-done" for e in events) == outcome.done
    assert "| host | h4 | base/folder | not done | absent | folder 0755 root:root |" in texts["report.md"]
    assert "| host | h3 | base/folder | done | absent | folder 0755 root:root |" in texts["report.md"]
    assert "**/etc/app: disk is full**" in texts["report.md"]


def test_no_secret_reaches_the_folder_by_any_way(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    secret = step("h1", "key/file", "file", file.Params("/etc/key", CANARY, secret=True))
    wanted, fleet = wanted_of({"h1": (*steps_of("h1"), secret)}), fleet_of(HOSTS)
    planned = plan(fleet, wanted)
    journal.plan(planned)
    apply(fleet, wanted, planned, journal, await_ready=lambda i: None)
    # what a program of a host said may hold it too
    journal(Event("change-failed", f"curl: bad key {CANARY}", host="h1", data={"tail": [CANARY]}))
    journal.save_log("h1", "x", f"key={CANARY}\n")
    journal.end(1, [Problem(f"refused {CANARY}")])
    for name, text in texts_of(journal.folder).items():
        assert "ter2" not in text, name
    assert "refused <secret api_key>" in (journal.folder / "report.md").read_text()


def test_threads_of_many_hosts_write_whole_lines(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: journal(Event("job", "x" * 5000, host=f"h{n}")), range(200)))
    lines = (journal.folder / "events.jsonl").read_text().splitlines()
    assert {json.loads(line)["host"] for line in lines} == {f"h{n}" for n in range(200)}


def test_runs_are_listed_and_told_again_also_one_that_was_killed(tmp_path: Path) -> None:
    environment = {"DSV32_RUNS": str(tmp_path)}
    first = journal_in(tmp_path)
    first.end(0, [])
    killed = journal_in(tmp_path, flow="up")
    killed(Event("stage-started", "host", subject="host"))
    with (killed.folder / "events.jsonl").open("a") as half_a_line:
        half_a_line.write('{"format": 1, "ki')

    lines = list_runs(environment)
    assert [line.id for line in lines] == sorted((first.run.id, killed.run.id), reverse=True)
    results = {line.id: line.result for line in lines}
    assert results[first.run.id] == "done"
    assert results[killed.run.id] == "unfinished: it runs, or its controller was killed"
    story = show_run(environment, killed.run.id)
    assert [e["kind"] for e in story.events] == ["stage-started"]
    assert "- result: unfinished" in story.text()
    assert show_run(environment, first.run.id).text() == (first.folder / "report.md").read_text()
    with pytest.raises(InputError, match="no run is called nonsense"):
        show_run(environment, "nonsense")


def test_a_folder_that_cannot_hold_runs_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere" / "at all")
    for name in ("file", "dangling"):
        with pytest.raises(InputError) as raised:
            journal_in(tmp_path / name)
        assert raised.value.problems[0].where == str(tmp_path / name)
