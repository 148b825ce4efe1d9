"""A job is done once, whoever asks for it and wherever they were killed; its result is taken once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest
from no_hands import NoHands

from launcher.execute.jobs import RemoteJob
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.job import Job, folder_of, name_of, running_of, units_in
from launcher.model.plan import Op
from launcher.model.problem import LauncherError, Problem
from launcher.model.run import Event, Listener

T = TypeVar("T")
NAME = name_of("sum", [1, 2])
FOLDER = folder_of(NAME)
JOB = Job(
    NAME,
    ("sum", FOLDER),
    within_s=90,
    files={f"{FOLDER}/sum.py": b"program", f"{FOLDER}/spec.json": b"[1, 2]"},
    fresh_s=600.0,
)


class Killed(BaseException):
    """SIGKILL of the controller, as far as a test in one process can have it."""


@dataclass(frozen=True)
class Done:
    error: Problem | None = None
    ok: bool = True
    failed_index: None = None


@dataclass
class OneHost(NoHands):
    """A host whose jobs add up what their spec says. A job's unit is there until it is stopped."""

    ops_left: int = 1 << 30
    """The controller is killed before the next op."""
    killed_while_it_runs: bool = False
    fails: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    units: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Unit → its job's state, and since when."""
    now_s: float = 1000.0
    begun: int = 0
    asked_within_s: list[float] = field(default_factory=list)

    def ask(
        self, questions: Mapping[str, Sequence[Probe]], *, within_s: float
    ) -> Mapping[str, Facts | Problem]:
        return {h: Facts(h, {p: self.answer(p) for p in probes}) for h, probes in questions.items()}

    def answer(self, probe: Probe) -> Any:
        if probe.kind == "host":
            return {"time": self.now_s}
        (name, *_) = probe.args
        if probe.kind == "read":
            return {"text": self.files[name].decode()} if name in self.files else {"absent": True}
        unit = name if probe.kind == "unit" else f"dsv32-job-{name}.service"
        state, since_s = self.units.get(unit, ("absent", 0.0))
        return {"state": state, "since": since_s}

    def do(self, host: str, ops: Sequence[Op], *, listener: Listener, within_s: float, subject: str) -> Done:
        self.asked_within_s.append(within_s)
        for op in ops:
            if not self.ops_left:
                raise Killed
            self.ops_left -= 1
            if problem := self.done(op):
                return Done(problem, ok=False)
        return Done()

    def done(self, op: Op) -> Problem | None:
        args = op.args
        match op.verb:
            case "put":
                self.files[args["path"]] = op.content or b""
            case "remove":
                self.files = {p: c for p, c in self.files.items() if not p.startswith(f"{args['path']}/")}
            case "units":
                for unit in args["stop"]:
                    del self.units[unit]
            case "job":
                return self.job(f"dsv32-job-{args['name']}.service", args["words"][-1])
            case verb:
                raise AssertionError(verb)
        return None

    def job(self, unit: str, folder: str) -> Problem | None:
        if self.units.get(unit, ("absent",))[0] != "running":
            self.begun += 1
            self.units[unit] = ("running", self.now_s)
        if self.killed_while_it_runs:
            self.killed_while_it_runs = False
            raise Killed
        self.end(unit, folder)
        return Problem("ended: exit-code, status 1") if self.fails else None

    def end(self, unit: str, folder: str) -> None:
        """The job goes on to its end, whoever follows it."""
        if not self.fails:
            numbers = json.loads(self.files[f"{folder}/spec.json"])
            self.files[f"{folder}/told.json"] = json.dumps(sum(numbers)).encode()
        self.units[unit] = ("failed" if self.fails else "done", self.now_s)


def quiet(_: Event) -> None:
    pass


def on(host: OneHost, job: Job = JOB) -> RemoteJob:
    return RemoteJob(host, "h1", job, quiet, "a sum")


def summed(host: OneHost, job: Job = JOB) -> int:
    """From whatever is there to the result, which is kept."""
    remote = on(host, job)
    state = remote.state()
    if state != "done":
        remote.begin(state)
    (text,) = remote.collect("told.json")
    remote.discard()
    return int(text)


def test_it_is_begun_collected_and_gone() -> None:
    host = OneHost()
    assert on(host).state() == "absent"
    assert summed(host) == 3
    assert (host.begun, host.files, host.units) == (1, {}, {})
    assert host.asked_within_s == [150.0, 60.0], "its own time, and some for what is not its own"


@pytest.mark.parametrize("left", range(5))
def test_killed_between_any_two_ops_and_asked_again_it_is_done(left: int) -> None:
    host = OneHost(ops_left=left)  # it puts two files, begins, stops the unit, removes the files
    with pytest.raises(Killed):
        summed(host)
    host.ops_left = 1 << 30
    assert summed(host) == 3
    assert (host.files, host.units) == ({}, {})
    # where its unit was stopped the result was kept: who asks again asks for another one
    assert host.begun == (2 if left == 4 else 1)


def test_one_that_runs_is_attached_to_with_the_files_that_it_began_with() -> None:
    host = OneHost(killed_while_it_runs=True)
    with pytest.raises(Killed):
        summed(host)
    assert on(host).state() == "running"
    other = replace(JOB, files={f"{FOLDER}/spec.json": b"[5, 5]"})
    assert summed(host, other) == 3
    assert host.begun == 1


def test_one_that_ended_while_nobody_followed_is_picked_up_once() -> None:
    host = OneHost(killed_while_it_runs=True)
    with pytest.raises(Killed):
        summed(host)
    host.end(JOB.unit, FOLDER)
    assert on(host).state() == "done"
    assert summed(host) == 3
    assert host.begun == 1
    assert on(host).state() == "absent"


@pytest.mark.parametrize(("age_s", "begun"), [(600.0, 1), (601.0, 2)])
def test_an_old_result_is_not_taken(age_s: float, begun: int) -> None:
    host = OneHost()
    on(host).begin()
    host.now_s += age_s
    assert summed(host) == 3
    assert host.begun == begun


def test_what_keeps_no_result_is_done_anew() -> None:
    host, job = OneHost(), replace(JOB, fresh_s=0.0)
    on(host, job).begin()
    host.now_s += 1
    assert on(host, job).state() == "old"


def test_one_that_failed_is_told_and_the_next_one_who_asks_begins_it() -> None:
    host = OneHost(fails=True)
    with pytest.raises(LauncherError, match="ended: exit-code"):
        summed(host)
    assert on(host).state() == "failed"
    host.fails = False
    assert summed(host) == 3
    assert host.begun == 2


@pytest.mark.parametrize("left", [None, b"", b'{"cut'])
def test_one_that_leaves_no_whole_result_says_where_its_words_are(left: bytes | None) -> None:
    host = OneHost()
    on(host).begin()
    del host.files[f"{FOLDER}/told.json"]
    host.files |= {} if left is None else {f"{FOLDER}/told.json": left}
    with pytest.raises(LauncherError) as refused:
        on(host).collect("spec.json", "told.json")
    (problem,) = refused.value.problems
    assert problem.what == "a sum ended well and left no result"
    assert problem.where == f"h1, {FOLDER}"
    assert problem.do.startswith(f"ssh h1 journalctl -u {JOB.unit}")


def test_a_host_that_is_lost_is_told() -> None:
    gone = Problem("h1 does not answer", "h1")

    class Lost(OneHost):
        def ask(self, *_: Any, **__: Any) -> Mapping[str, Facts | Problem]:
            return {"h1": gone}

    with pytest.raises(LauncherError) as lost:
        on(Lost()).state()
    assert lost.value.problems == (gone,)


@pytest.mark.parametrize("number", range(3))
def test_where_a_host_cannot_say_it_is_begun(number: int) -> None:
    known = {"job": {"state": "done"}, "unit": {"since": 1000.0}, "host": {"time": 1000.0}}
    told: dict[Probe, Any] = {question: known[question.kind] for question in JOB.questions}
    assert JOB.state(Facts("h1", told)) == "done"
    told[JOB.questions[number]] = Unknown("no systemctl")
    assert JOB.state(Facts("h1", told)) == "absent"


def test_equal_work_has_one_name_and_no_other_work_has_it() -> None:
    works: list[Any] = [["a b"], ["a", "b"], ["a", ["b"]], [["a"], "b"], {"a": "b"}, "ab", ["ab"], [], None]
    assert len({name_of("x", work) for work in works}) == len(works)
    assert name_of("x", {"a": 1, "b": 2}) == name_of("x", {"b": 2, "a": 1})
    assert name_of("x", ("a", "b")) == name_of("x", ["a", "b"])
    assert name_of("x", []) != name_of("y", [])


def test_those_that_run_are_found_by_how_their_names_begin() -> None:
    ((words, _),) = (running_of("bench", "load").args,)
    assert words[-2:] == ("dsv32-job-bench-*", "dsv32-job-load-*")
    said = "dsv32-job-bench-1.service loaded active running /x\n\ndsv32-job-load-2.service loaded\n"
    assert units_in({"stdout": said}) == ("dsv32-job-bench-1.service", "dsv32-job-load-2.service")
    assert units_in(Unknown("no systemctl")) == ()
