"""What a diagnosis does beside matching: silent hangs, confirmations, clocks, broken signature files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from samples import ROOT, sample
from typer.testing import CliRunner

from launcher.cli.app import app
from launcher.cli.diagnosetext import cause_lines, hang_problem
from launcher.flows.diagnose import ask_to_confirm, down, of_files, unexplained, with_engines
from launcher.flows.hang import Halt, Hang, Stacks, halt_in, hangs, stacks, stalled
from launcher.flows.status import Status
from launcher.flows.targets import Unit
from launcher.health.diagnose import Diagnosis, diagnose
from launcher.health.errors import Line
from launcher.health.matches import version_told
from launcher.health.state import FrontState, ProcessState
from launcher.health.stuck import Stuck, find_stuck
from launcher.load.data import Data, shipped
from launcher.load.signatures import read_log_knowledge
from launcher.model.deployment import Deployment
from launcher.model.facts import Facts, Probe
from launcher.model.problem import InputError, Problem
from launcher.model.profile import Engine
from launcher.model.signature import LogLine
from launcher.resolve import resolve

KNOWN = read_log_knowledge(Data((shipped(),)))
RECORDS = ROOT / "tests/support/logs"


class OneAnswer:
    """A fleet whose hosts all give the same answer to any command."""

    def __init__(self, exit: int | None, stdout: str) -> None:
        self.answer = {"exit": exit, "stdout": stdout, "stderr": "", "seconds": 0.1}
        self.asked: list[tuple[str, Probe]] = []

    def ask(
        self, questions: Mapping[str, Sequence[Probe]], *, within_s: float
    ) -> Mapping[str, Facts | Problem]:
        self.asked += [(host, probe) for host, probes in questions.items() for probe in probes]
        return {host: Facts(host, dict.fromkeys(probes, self.answer)) for host, probes in questions.items()}

    def do(self, *words: object, **more: object) -> None:
        raise AssertionError("a diagnosis changes nothing")


@pytest.fixture
def deployed(tmp_path: Path) -> tuple[Deployment, Engine]:
    wanted = resolve(sample("prod-2p1d-current", tmp_path))
    assert wanted.deployment
    assert wanted.wish.profile.engine
    return wanted.deployment, wanted.wish.profile.engine


def states(deployment: Deployment, *, healthy: bool | None, active: str = "active") -> list[ProcessState]:
    return [
        ProcessState(p.instance, p.host, p.unit, active, 1000.0, {}, healthy, ())
        for i in deployment.instances
        for p in i.processes
    ]


def logs(deployment: Deployment, behind: str) -> dict[tuple[str, str], Sequence[Line]]:
    """Every process has loaded its weights after 400 s, but one of decode-0."""
    told: dict[tuple[str, str], Sequence[Line]] = {}
    for instance in deployment.instances:
        for p in instance.processes:
            lines = [Line(1010.0, "Initializing a V1 LLM engine (v0.33.0) with config")]
            lines += [Line(1020.0, "Starting to load model x")]
            if p.host != behind:
                lines += [Line(1400.0, "Model loading took 40.0 GiB memory and 380 seconds")]
            told[p.host, p.unit] = lines
    return told


def test_the_process_that_the_others_wait_for_is_named(deployed: tuple[Deployment, Engine]) -> None:
    deployment, engine = deployed
    slow = deployment.instance("decode-0").hosts[-1]
    answering = [s for s in states(deployment, healthy=True) if not s.instance.startswith("decode")]
    waiting = [s for s in states(deployment, healthy=False) if s.instance.startswith("decode")]

    def found(now_s: float) -> Stuck:
        (one,) = find_stuck(deployment, [*answering, *waiting], logs(deployment, slow), engine, now_s)
        return one

    early, late = found(1500.0), found(1020.0 + 1801)
    assert (early.process.host, early.phase, early.late) == (slow, "weights", False)
    assert (late.process.host, late.late, late.budget_s) == (slow, True, 1800)
    assert hang_problem(Hang(early)).do == "dsv32-launch logs decode-0 --follow"
    told = hang_problem(Hang(late, stacks=Stacks("", "py-spy")))
    assert told.do == "dsv32-launch restart decode-0"
    assert "budget 1800 s" in told.what
    assert "for its stacks: py-spy" in told.more


def test_nothing_is_stuck_when_all_answer_or_one_is_dead(deployed: tuple[Deployment, Engine]) -> None:
    deployment, engine = deployed
    for own in (states(deployment, healthy=True), states(deployment, healthy=False, active="failed")):
        assert find_stuck(deployment, own, {}, engine, 9e9) == ()


def test_stacks_are_taken_where_there_is_py_spy_and_else_it_is_said_how(
    deployed: tuple[Deployment, Engine],
) -> None:
    deployment, _ = deployed
    process = deployment.instances[0].processes[0]
    assert stacks(OneAnswer(0, "Thread 1 (idle)"), process, deployment) == Stacks("Thread 1 (idle)")
    how = stacks(OneAnswer(127, ""), process, deployment).how
    assert "py-spy dump --pid" in how
    assert f"{deployment.environment_path}/bin/py-spy" in how, "it is said where it was looked for"


PS = """
   4711 S do_epoll_wait /nvme/environments/x/bin/python /nvme/environments/x/bin/vllm serve
   4722 D filemap_read VLLM::EngineCore_DP1
   4733 {state} do_signal_stop VLLM::Worker_DP1_EP1
"""


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("T", "process 4733 (VLLM::Worker_DP1_EP1) was stopped by a signal: kill -CONT 4733 lets it go on"),
        ("S", "process 4722 (VLLM::EngineCore_DP1) waits in the kernel: filemap_read"),
    ],
)
def test_a_process_that_cannot_go_on_is_named(state: str, told: str) -> None:
    assert halt_in(PS.format(state=state)) == Halt(told, state == "T")
    assert halt_in("") is None


class OneHalted(OneAnswer):
    """A fleet of which one host has a process that was stopped."""

    def ask(
        self, questions: Mapping[str, Sequence[Probe]], *, within_s: float
    ) -> Mapping[str, Facts | Problem]:
        answers = dict(super().ask(questions, within_s=within_s))
        running = {
            "exit": 0,
            "stdout": PS.format(state="S").replace(" D ", " S "),
            "stderr": "",
            "seconds": 0.1,
        }
        for host in questions.keys() - {"gpu06"}:
            answers[host] = Facts(host, dict.fromkeys(questions[host], running))
        return answers


def test_an_engine_that_answers_and_makes_no_token_waits_for_the_process_that_is_halted(
    deployed: tuple[Deployment, Engine],
) -> None:
    """Its leader says so in its log, and is not where to look."""
    deployment, engine = deployed
    signature = next(s for s in KNOWN.signatures if s.id == "engine-stalled")
    leader, peer = deployment.instance("decode-0").hosts
    lines = [
        LogLine(leader, "dsv32-decode-0", 1000.0 + 10 * n, signature.samples[0], "decode-0") for n in range(4)
    ]
    found = diagnose(lines, KNOWN, engine)
    (stuck,) = stalled(deployment, states(deployment, healthy=True), found, 1100.0)
    assert (stuck.process.host, stuck.for_s) == (leader, 100.0)
    fleet = OneHalted(0, PS.format(state="T"))
    up = states(deployment, healthy=True)
    (hang,) = hangs(fleet, deployment, up, [stuck])
    assert (peer, hang.stuck.process.host) == ("gpu06", "gpu06")
    assert "decode-0 waits for its process on gpu06, and has made no token" in hang_problem(hang).what
    assert hang_problem(hang).why.startswith("process 4733")
    (idle,) = hangs(fleet, deployment, up, [])
    assert hang_problem(idle).what == "decode-0 waits for its process on gpu06"
    assert hangs(OneAnswer(0, PS.format(state="S")), deployment, up, []) == (), "a moment in the kernel"
    assert stalled(deployment, states(deployment, healthy=False), found, 1100.0) == ()


def test_a_cause_is_confirmed_on_its_host(deployed: tuple[Deployment, Engine]) -> None:
    _, engine = deployed
    text = "error while attempting to bind on address ('0.0.0.0', 8000): address already in use"
    causes = diagnose([LogLine("h2", "dsv32-decode-0", 1.0, text, "decode-0")], KNOWN, engine).causes
    for stdout, sure in (("LISTEN 0 5 *:8000 *:*", "confirmed"), ("LISTEN 0 5 *:18000 *:*", "not seen now")):
        fleet = OneAnswer(0, stdout)
        assert [c.sure for c in ask_to_confirm(fleet, causes, ["h2"])] == [sure]
        assert [host for host, _ in fleet.asked] == ["h2"]
    assert [c.sure for c in ask_to_confirm(OneAnswer(127, ""), causes, ["h2"])] == ["matched"]
    assert [c.sure for c in ask_to_confirm(OneAnswer(0, ""), causes, ["elsewhere"])] == ["matched"]


def test_a_dead_process_of_which_no_line_is_known_is_told(deployed: tuple[Deployment, Engine]) -> None:
    deployment, engine = deployed
    dead = states(deployment, healthy=None, active="failed")[0]
    front = FrontState("h1", "dsv32-front.service", "activating", "http://h1:8080", answers=False)
    now = Status("prod", (dead,), (), (front,))
    found = down(now, {(dead.host, dead.unit), (front.host, front.unit)})
    told = unexplained(found, Diagnosis(()))
    assert [p.do for p in told] == [f"dsv32-launch logs {dead.instance}", "dsv32-launch logs front"]
    line = LogLine(dead.host, "x", 1.0, "ValueError: who knows", dead.instance)
    assert [p.where for p in unexplained(found, diagnose([line], KNOWN, engine))] == [
        "h1, unit dsv32-front.service"
    ]
    assert down(now, ()) == ()


def test_who_only_looks_on_tells_of_this_life_of_the_engines_alone() -> None:
    names = ("dsv32-decode-0", "dsv32-guard-decode-0", "dsv32-router-a", "dsv32-prefill-0")
    engine, guard, router, old = (
        Unit("h1", name, owner, guards="guard" in name)
        for name, owner in zip(names, ("decode-0", "decode-0", "router", "prefill-0"), strict=True)
    )
    begins_s = {engine: (100, 101), guard: (40, 99, 130), router: (40, 120), old: (10, 20)}
    logs = {(u.host, u.name): tuple(LogLine("h1", u.name, t, "x") for t in s) for u, s in begins_s.items()}
    told = {unit: [line.time_s for line in log] for (_, unit), log in with_engines(logs, begins_s).items()}
    assert told == dict(zip(names, ([100, 101], [130], [120], [10, 20]), strict=True))


def test_between_hosts_seconds_do_not_tell_which_came_first(deployed: tuple[Deployment, Engine]) -> None:
    _, engine = deployed
    two = [
        LogLine("h1", "dsv32-prefill-0", 100.0, "OSError: [Errno 28] No space left on device", "prefill-0"),
        LogLine("h2", "dsv32-decode-0", 102.0, "torch.OutOfMemoryError: CUDA out of memory.", "decode-0"),
    ]
    first = diagnose(two, KNOWN, engine).causes[0]
    assert first.close == ("h2",)
    assert "clocks may differ: h2" in "\n".join(cause_lines(first))
    apart = [two[0], LogLine("h2", "dsv32-decode-0", 140.0, two[1].text, "decode-0")]
    assert diagnose(apart, KNOWN, engine).causes[0].close == ()


def test_of_what_nobody_knows_the_first_error_of_each_host_is_shown_in_time_order(
    deployed: tuple[Deployment, Engine],
) -> None:
    _, engine = deployed
    said = [
        ("h3", 102, "FluxError: 7"),
        ("h1", 104, "ValueError: late"),
        ("h3", 103, "FluxError: more of it"),
    ]
    lines = [LogLine(host, "dsv32-decode-0", time_s, text, "decode-0") for host, time_s, text in said]
    (cause,) = diagnose(
        [*lines, LogLine("h2", "dsv32-decode-0", 90, "OddError: x", "decode-0")], KNOWN, engine
    ).causes
    assert [m.text for m in cause.first_errors] == ["OddError: x", "FluxError: 7", "ValueError: late"]
    shown = [line for line in cause_lines(cause) if "Error" in line]
    assert [line.split()[-3:][0] for line in shown[1:4]] == ["h2", "h3", "h1"]
    assert sum("OddError" in line for line in shown) == 2, "in the title, and as the first"


def test_the_release_is_read_from_the_log_where_it_is_told() -> None:
    line = LogLine(
        "h", "u", 0.0, "[core.py:116] Initializing a V1 LLM engine (v0.26.0) with config: model='x'"
    )
    assert version_told([line], KNOWN.forms) == "0.26.0"
    other = LogLine(
        "h", "u", 0.0, "[core.py:116] Initializing a V1 LLM engine (v0.33.0) with config: model='x'"
    )
    assert version_told([line, other], KNOWN.forms) == ""


@pytest.mark.parametrize("name", ["prefill-ready.log", "decode-deepgemm-warmup.log"])
def test_a_recorded_start_on_h200_is_nothing_wrong(name: str) -> None:
    assert not of_files([RECORDS / name], version="", data_dir=None).found


def test_a_recorded_death_on_h200_is_told_by_its_cause() -> None:
    (cause,) = of_files([RECORDS / "prefill-died-at-start.log"], version="", data_dir=None).diagnosis.causes
    assert cause.signature
    assert (cause.signature.id, cause.do) == ("no-kv-memory", "dsv32-launch fit --explain")
    assert [e.match.key for e in cause.effects] == ["engine-start-failed"]


@pytest.mark.parametrize(
    ("name", "code", "last"),
    [
        ("prefill-died-at-start.log", 1, "1 cause; 119 lines read"),
        ("prefill-ready.log", 0, "nothing wrong; 90 lines read"),
    ],
)
def test_the_command_ends_in_a_verdict_and_an_exit_code(name: str, code: int, last: str) -> None:
    done = CliRunner().invoke(app, ["diagnose", "--from", str(RECORDS / name)])
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (code, last)
    told = CliRunner().invoke(app, ["diagnose", "--from", str(RECORDS / name), "--json"])
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    assert [line["do"] for line in lines if line["type"] == "cause"] == ["dsv32-launch fit --explain"] * code


def test_a_wrong_release_is_refused() -> None:
    done = CliRunner().invoke(app, ["diagnose", "--from", "x", "--engine-version", "new"])
    assert isinstance(done.exception, InputError)


def test_what_saved_logs_cannot_answer_is_refused() -> None:
    done = CliRunner().invoke(app, ["diagnose", "decode-0", "--from", "x"])
    assert isinstance(done.exception, InputError)
    assert "a target means nothing to --from" in str(done.exception)


GOOD = """
x:
  patterns: ['one (?P<port>\\d+)']
  likely: something at {port}
  do: dsv32-launch up
  known_from: a run
  samples: [one 1]
"""


@pytest.mark.parametrize(
    ("old", "new", "told", "line"),
    [
        ("one (", "one ((", "is no regular expression", 2),
        ("'one (?P<port>\\d+)'", "'.*'", "is found in every line", 2),
        ("{port}", "{prot}", "placeholder `{prot}` names nothing", 2),
        ("x:\n", "X x:\n", "is not lower-case", 2),
        ("  do:", "  of: [nonsense]\n  do:", "said to come of `nonsense`", 2),
        ("  do:", "  role: consequence\n  do:", "is a consequence `of` nothing", 2),
        ("  do:", "  since: soon\n  do:", "expected a release", 2),
        ("  do:", "  since: 0.2.0\n  until: 0.1.0\n  do:", "never", 2),
        ("  do:", "  frobnicate: 1\n  do:", "unknown key `frobnicate`", 5),
    ],
)
def test_a_mistake_in_a_signature_is_told_with_its_line(
    tmp_path: Path, old: str, new: str, told: str, line: int
) -> None:
    folder = tmp_path / "configs/signatures"
    folder.mkdir(parents=True)
    assert old in GOOD
    (folder / "own.yaml").write_text(GOOD.replace(old, new))
    with pytest.raises(InputError) as raised:
        read_log_knowledge(Data((tmp_path, shipped())))
    (problem,) = raised.value.problems
    assert told in problem.what
    assert problem.where.endswith(f"own.yaml:{line}")


def test_a_signature_of_ones_own_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "configs/signatures"
    folder.mkdir(parents=True)
    (folder / "own.yaml").write_text(GOOD)
    assert "x" in {s.id for s in read_log_knowledge(Data((tmp_path, shipped()))).signatures}
