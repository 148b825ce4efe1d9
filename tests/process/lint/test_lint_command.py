"""lint, plan and accept over a whole deployment: exit codes, what counts, JSON, SARIF."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import launch
from resolve_wish import wish

from launcher.cli.sarif import sarif
from launcher.flows.launches import launches_of
from launcher.flows.lint import Report, Told, judged, lint
from launcher.model.problem import Exit, InputError, Problem
from launcher.resolve import resolve

GOOD = """\
decode:
  tensor_parallel: 2
  data_parallel: 4
  settings: {enable-expert-parallel: true, max-num-seqs: 64, max-num-batched-tokens: 256}
  environment: {VLLM_ENGINE_READY_TIMEOUT_S: "3000"}
"""
PADDED = GOOD.replace("tensor_parallel: 2", "tensor_parallel: 8").replace(
    "data_parallel: 4", "data_parallel: 1"
)
UNEVEN = GOOD.replace(
    "max-num-seqs: 64", "max-num-seqs: 64, enable-eplb: true, eplb-config: {num_redundant_experts: 3}"
)


def report(folder: Path, layout: str, accept: str = "") -> Report:
    """What lint says of a deployment on vLLM 0.14.1."""
    wish(folder, layout, stack="article-0.14", decode="h[01-01]", more=accept)
    return lint(folder / "test.yaml", told=Told(), data_dir=folder / "data")


def rules(found: Report) -> dict[str, str]:
    return {f.rule: f.state for f in found.findings if f.severity != "note"}


def test_errors_warnings_and_nothing_have_each_their_exit_code(tmp_path: Path) -> None:
    assert (report(tmp_path, GOOD).exit_code, rules(report(tmp_path, GOOD))) == (Exit.DONE, {})
    padded = report(tmp_path, PADDED)
    assert (padded.exit_code, rules(padded)["tp-pads-heads"]) == (Exit.WARNINGS, "fires")
    uneven = report(tmp_path, UNEVEN)
    assert (uneven.exit_code, rules(uneven)["eplb-uneven"]) == (Exit.INPUT_WRONG, "fires")


def test_an_accepted_finding_is_shown_and_does_not_count(tmp_path: Path) -> None:
    why = "accept: {eplb-uneven: a test of the message}\n"
    accepted = report(tmp_path, UNEVEN, why)
    assert rules(accepted)["eplb-uneven"] == "accepted"
    assert accepted.exit_code == Exit.DONE


def test_only_rules_that_there_are_can_be_accepted_and_only_for_a_reason(tmp_path: Path) -> None:
    unknown = report(tmp_path, GOOD, "accept: {eplb-unevne: a slip}\n")
    assert [p.what for p in unknown.problems] == ["`accept` names an unknown rule `eplb-unevne`"]
    assert unknown.problems[0].where == f"{tmp_path}/test.yaml:13"
    assert "eplb-uneven" in unknown.problems[0].do
    with pytest.raises(InputError, match="`accept` has no reason for eplb-uneven"):
        wish(tmp_path, GOOD, stack="article-0.14", decode="h[01-01]", more='accept: {eplb-uneven: ""}\n')


def test_what_cannot_serve_is_not_planned(tmp_path: Path) -> None:
    def judge(layout: str, accept: str = "") -> list[str]:
        read = wish(tmp_path, layout, stack="article-0.14", decode="h[01-01]", more=accept)
        return [f.rule for f in judged(resolve(read), data_dir=tmp_path / "data") if f.counts]

    assert "tp-pads-heads" in judge(PADDED), "a warning stops nobody"
    with pytest.raises(InputError) as refused:
        judge(UNEVEN)
    (problem,) = refused.value.problems
    assert problem.where.startswith(f"{tmp_path}/data/configs/layouts/test.yaml:5; "), "the line that set it"
    assert judge(UNEVEN, "accept: {eplb-uneven: a test}\n") == []


def test_a_plan_says_once_what_rules_warn_of(tmp_path: Path) -> None:
    wish(tmp_path, PADDED, stack="article-0.14", decode="h[01-01]")
    told = launch("plan", "test.yaml", "--offline", "--data-dir", "data", folder=tmp_path)
    assert told.returncode == Exit.CHANGES, told.stderr
    title, remark, *_ = told.stdout.splitlines()
    assert "vLLM 0.14.1" in title
    assert "see dsv32-launch lint test.yaml: " in remark
    assert "tp-pads-heads" in remark
    assert told.stdout.count("tp-pads-heads") == 1


def test_findings_of_a_foreign_file_for_people_and_programs(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("#!/bin/sh\nvllm serve /m -tp 2 -dp 4 \\\n  --max-num-sqes 8\n")
    told = launch("lint", "--from", "run.sh", "--release", "0.33.0", folder=tmp_path)
    assert told.returncode == Exit.INPUT_WRONG, told.stderr
    assert "error: no release of vLLM has --max-num-sqes (did you mean max-num-seqs?)\n" in told.stdout
    assert "  where   run.sh:3\n" in told.stdout
    assert "  rule    unknown-flag\n" in told.stdout

    told = launch("lint", "--from", "run.sh", "--release", "0.33.0", "--json", folder=tmp_path)
    *findings, last = map(json.loads, told.stdout.splitlines())
    assert [f["places"] for f in findings if f["rule"] == "unknown-flag"] == [["run.sh:3"]]
    assert (last["type"], last["exit"]) == ("lint", 2)

    told = launch("lint", "--from", "run.sh", "--format", "sarif", folder=tmp_path)
    valid(json.loads(told.stdout))


OWN = """\
ours:
  severity: note
  when: [{setting: max-num-seqs, above: 192}]
  what: "{max-num-seqs} requests a rank"
  why: our load test
  fix: "max-num-seqs: 192"
  known_from: our load test
  fires: [{engine: 0.18.0, text: vllm serve /m --max-num-seqs 256}]
  passes: [{engine: 0.18.0, text: vllm serve /m --max-num-seqs 192}]
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("192", "192", ""),
        ("seqs 256", "seqs 128", "rule ours does not fire at a sample that stands under `fires`"),
        ("seqs 192", "seqs 193", "rule ours fires at a sample that stands under `passes`"),
        ("{engine: 0.18.0, text: vllm", "{engine: 0.18.0, text: echo vllm", "starts no vLLM"),
        ("{engine: 0.18.0,", "{engine: 0.18.0, model: deepseek,", "names `deepseek`, which is not known"),
    ],
)
def test_a_rule_of_ones_own_is_tried_at_its_samples(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = tmp_path / "data/configs/rules/ours.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(OWN.replace(old, new))
    done = launch("lint", "--rule", "ours", "--data-dir", "data", folder=tmp_path)
    assert done.returncode == (Exit.INPUT_WRONG if told else Exit.DONE), done.stderr
    assert told in done.stderr


def test_what_depends_on_more_says_how_bad_it_would_be_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("VLLM_ALL2ALL_BACKEND=pplx vllm serve /m -dp 8 -ep $EXTRA\n")
    told = launch("lint", "--from", "run.sh", "--release", "0.18.0", folder=tmp_path).stdout
    _, found, rest = told.partition("depends (warning): VLLM_ALL2ALL_BACKEND=pplx is read no more")
    assert found
    assert "  do      settings: `all2all-backend`" in rest.partition("  rule ")[0]


def test_rules_can_be_listed_and_told_whole(tmp_path: Path) -> None:
    listed = launch("lint", "--rules", folder=tmp_path).stdout
    assert any(line.startswith("warning  tp-pads-heads ") for line in listed.splitlines())
    whole = launch("lint", "--rule", "tp-pads-heads", folder=tmp_path).stdout
    assert {"  why ", "  do  ", "  sour", "  fire"} <= {line[:6] for line in whole.splitlines()}
    told = launch("lint", "--rule", "tp-pad-heads", folder=tmp_path)
    assert (told.returncode, "did you mean `tp-pads-heads`?" in told.stderr) == (Exit.INPUT_WRONG, True)


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (("--from", "run.sh", "--release", "new"), "--release"),
        (("--from", "run.sh", "--release", "v0.33.0"), "--release"),
        (("test.yaml", "--hardware", "h200"), "--hardware"),
        (("--from", "run.sh", "--format", "sarif", "--json"), "--format sarif"),
        (("--rules", "--format", "sarif"), "--format sarif"),
    ],
)
def test_options_that_say_nothing_here_are_refused(
    tmp_path: Path, words: tuple[str, ...], where: str
) -> None:
    (tmp_path / "run.sh").write_text("vllm serve /m\n")
    told = launch("lint", *words, folder=tmp_path)
    assert (told.returncode, f"  where  {where}\n" in told.stderr) == (Exit.INPUT_WRONG, True), told.stderr


def valid(log: dict[str, Any]) -> None:
    """What the schema of SARIF 2.1.0 requires of a log, and what shows beside a line."""
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("/sarif-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    ids = [rule["id"] for rule in driver["rules"]]
    assert driver["name"]
    assert len(ids) == len(set(ids))
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["message"]["text"]
        assert result["level"] in ("none", "note", "warning", "error")
        for location in result["locations"]:
            physical = location["physicalLocation"]
            assert physical["artifactLocation"]["uri"]
            assert physical.get("region", {"startLine": 1})["startLine"] >= 1
        for suppression in result.get("suppressions", ()):
            assert suppression["kind"] in ("inSource", "external")


def test_sarif_keeps_lines_levels_and_what_was_accepted(tmp_path: Path) -> None:
    found = report(tmp_path, UNEVEN, "accept: {eplb-uneven: a test}\n")
    log = sarif(Report((Problem("bad", "my file.yaml:3"),), findings=found.findings, rules=found.rules))
    valid(log)
    problem, *results = log["runs"][0]["results"]
    assert problem["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "my%20file.yaml"},
        "region": {"startLine": 3},
    }
    (accepted,) = (r for r in results if r["ruleId"] == "eplb-uneven")
    assert accepted["suppressions"] == [{"kind": "external", "justification": "a test"}]
    assert accepted["locations"][0]["physicalLocation"]["region"] == {"startLine": 5}


def test_a_launch_holds_what_the_unit_will(tmp_path: Path) -> None:
    wanted = resolve(wish(tmp_path, PADDED, stack="article-0.14", decode="h[01-01]"))
    (one,) = launches_of(wanted)
    assert (one.name, one.pool, one.disaggregated, one.hosts) == ("decode-0 on h01", "", False, 1)
    assert one.flags["model"].value == "/nvme/models/DeepSeek-V3.2"
    assert (one.flags["tensor-parallel-size"].value, one.flags["enable-expert-parallel"].value) == ("8", True)
    assert one.unit is not None
    assert (one.unit["LimitMEMLOCK"], one.unit["Restart"]) == ("infinity", "no")
