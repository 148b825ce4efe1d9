"""Runbooks: mistakes in them, their steps for an inventory, what is asked before and of hosts, and a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from no_hands import NoHands
from small_wanted import HOSTS, wanted_of

from launcher.cli.runbookrun import complete, refuse_missing
from launcher.flows.runbook import command_for, digest_of, earlier, left, moves, scope_of
from launcher.flows.runbook_looks import below_minimum, look
from launcher.flows.status import Status
from launcher.health.state import ProcessState
from launcher.load.data import Data, shipped
from launcher.load.runbooks import read_runbooks
from launcher.model.facts import Facts, Probe
from launcher.model.problem import InputError, Problem
from launcher.model.run import Event
from launcher.model.runbook import OnHost, Runbook, RunbookStep, Subject
from launcher.record import Journal, open_journal

WANTED = wanted_of()
INVENTORY = WANTED.wish.inventory
HEAD = "title: t\ntarget: {target}\nseen: [s]\nwho: w\ndanger: d\nescalate: e\n"


def book_of(*steps: RunbookStep, target: Subject = "instance") -> Runbook:
    return Runbook("b", "t", target, ("seen",), "who", "danger", steps, "escalate")


def moves_of(book: Runbook, target: str) -> list[tuple[str, str]]:
    assert WANTED.deployment
    scope = scope_of(book, WANTED.deployment, INVENTORY.hosts, target, must=True)
    return [
        (m.id, " ".join((*m.words, *m.hosts, m.by_hand)).strip())
        for m in moves(book, scope, WANTED.deployment)
    ]


STEPS = (
    RunbookStep("once", "e", do="dsv32-launch status"),
    RunbookStep("each instance", "e", do='dsv32-launch drain {{instance}} -m "a {{pool}}"'),
    RunbookStep("each host", "e", on_host=OnHost(("uptime",))),
    RunbookStep("both", "e", by_hand="{{instance}} on {{host}}"),
)


def test_a_step_is_done_for_each_that_it_names() -> None:
    book = book_of(*STEPS, target="pool")
    assert moves_of(book, "decode") == [
        ("1", "status"),
        ("2 decode-0", "drain decode-0 -m a decode"),
        ("2 decode-1", "drain decode-1 -m a decode"),
        *((f"3 {h}", h) for h in ("h2", "h3", "h4")),
        *(
            (f"4 {i} {h}", f"{i} on {h}")
            for i, h in (("decode-0", "h2"), ("decode-0", "h3"), ("decode-1", "h4"))
        ),
    ]
    alone = book_of(*STEPS)
    assert [number for number, _ in moves_of(alone, "prefill-0")] == ["1", "2", "3", "4"]
    peers = book_of(*(s for s in STEPS if "pool" not in s.do), target="host")
    assert moves_of(peers, "h3") == [("1", "status"), ("2", "h3"), ("3", "decode-0 on h3")]
    assert moves_of(peers, "h5") == [("1", "status"), ("2", "h5")], "a host that routes has no instance"


@pytest.mark.parametrize(
    ("target", "given", "message"),
    [
        ("instance", "", "b is for an instance, and none is named"),
        ("instance", "h2", "`h2` is no instance"),
        ("host", "decode-0", "`decode-0` is no host"),
        ("pool", "router", "`router` is no pool"),
        ("fleet", "h2", "b is for the whole fleet"),
    ],
)
def test_a_target_of_another_kind_is_refused(target: Subject, given: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        moves_of(book_of(STEPS[0], target=target), given)


def test_a_runbook_is_run_for_what_its_kind_is() -> None:
    told = {
        kind: command_for(book_of(target=kind), instance="decode-1", host="h4")  # type: ignore[arg-type]
        for kind in ("instance", "host", "pool", "fleet")
    }
    assert told == {
        "instance": "dsv32-launch runbook run b decode-1",
        "host": "dsv32-launch runbook run b h4",
        "pool": "dsv32-launch runbook run b decode",
        "fleet": "dsv32-launch runbook run b",
    }
    assert command_for(book_of(), instance="", host="h5") == "dsv32-launch runbook show b"


@pytest.mark.parametrize(
    ("rest", "where", "message"),
    [
        ("steps: []", "b.yaml:7", "`steps` has too few entries"),
        ("steps: [{say: s, expect: e}]", "b.yaml:7", "this one has none"),
        ("steps: [{say: s, expect: e, do: dsv32-launch up, by_hand: x}]", "b.yaml:7", "do and by_hand"),
        ("steps:\n  - {say: s, expect: e, do: dsv32-launch rm}", "b.yaml:8", "`rm` is no verb of runbooks"),
        ("steps: [{say: s, expect: e, do: ssh h1}]", "b.yaml:7", "expected a command of ours"),
        ("steps: [{say: s, expect: e, do: 'dsv32-launch up \"'}]", "b.yaml:7", "is no command line"),
        ("steps: [{say: s, expect: e, by_hand: '{{hosts}}'}]", "b.yaml:7", "`{{hosts}}` names nothing here"),
        ("steps: [{say: s, expect: e, by_hand: x, exits: [1]}]", "b.yaml:7", "`exits` belongs to `do`"),
        (
            "steps: [{say: s, expect: e, on_host: {run: [a], finds: '('}}]",
            "b.yaml:7",
            "no regular expression",
        ),
        (
            "steps: [{say: s, expect: e, by_hand: x, otherwise: gpu}]",
            "b.yaml:7",
            "`gpu`, which is no runbook",
        ),
        (
            "steps: [{say: s, expect: e, by_hand: x, only_if: [luck]}]",
            "b.yaml:7",
            "expected one of minimum, alone",
        ),
        ("steps: [{say: s, expect: e, by_hand: x}]\nsignatures: [nonsense]", "b.yaml:1", "is no signature"),
        ("steps: [{say: s, expect: e, by_hand: x}]\nsignatures: [nixl-peer-lost]", "", "has two runbooks"),
    ],
)
def test_a_mistake_is_told_with_its_line(rest: str, where: str, message: str, tmp_path: Path) -> None:
    folder = tmp_path / "configs/runbooks"
    folder.mkdir(parents=True)
    (folder / "b.yaml").write_text(HEAD.format(target="host") + rest + "\n")
    with pytest.raises(InputError) as wrong:
        read_runbooks(Data((tmp_path, shipped())))
    (problem,) = wrong.value.problems
    assert message in problem.what
    assert problem.where.endswith(where)


def status_of(**up: bool) -> Status:
    hosts = {"prefill_0": "h1", "decode_0": "h2", "decode_1": "h4"}
    states = tuple(
        ProcessState(
            instance=name.replace("_", "-"),
            host=hosts[name],
            unit="u",
            active="active" if good else "failed",
            since_s=0.0,
            healthy=good,
            ports={},
            ranks=(),
        )
        for name, good in up.items()
    )
    return Status("small", states, ())


@pytest.mark.parametrize(
    ("up", "refused"),
    [
        ({"prefill_0": True, "decode_0": True, "decode_1": True}, False),
        ({"prefill_0": True, "decode_0": True, "decode_1": False}, True),
        ({"prefill_0": True, "decode_0": False, "decode_1": False}, False),  # it does not serve anyway
    ],
)
def test_a_pool_keeps_its_minimum(up: Mapping[str, bool], refused: bool) -> None:
    assert WANTED.deployment
    scope = scope_of(book_of(STEPS[0]), WANTED.deployment, INVENTORY.hosts, "decode-0", must=True)
    found = below_minimum(scope, INVENTORY, WANTED.deployment.instances, status_of(**up))
    assert [p.what for p in found] == (
        ["pool decode would have 0 instances that serve, its minimum is 1"] if refused else []
    )


class Saying(NoHands):
    """Hosts that answer any command with a text and a status."""

    def __init__(self, text: str, status: int | None = 0) -> None:
        self.told = {"stdout": text, "stderr": "", "exit": status, "seconds": 0.1}

    def ask(self, questions: Mapping[str, Sequence[Probe]], *, within_s: float) -> dict[str, Facts | Problem]:
        return {h: Facts(h, dict.fromkeys(probes, self.told)) for h, probes in questions.items()}


@pytest.mark.parametrize(
    ("on_host", "said", "status", "wrong"),
    [
        (OnHost(("x",)), "", 0, ""),
        (OnHost(("x",)), "", 3, "ended with status 3"),
        (OnHost(("x",)), "", None, "did not end within"),
        (OnHost(("x",), finds="^GPU 7"), "GPU 6\nGPU 7", 1, ""),
        (OnHost(("x",), finds="^GPU 7"), "GPU 6", 0, "`^GPU 7` is not in what it says"),
        (OnHost(("x",), lacks="DOWN"), "1: ACTIVE\n2: DOWN", 0, "`DOWN` is in what it says"),
    ],
)
def test_a_host_shows_what_is_expected_or_not(
    on_host: OnHost, said: str, status: int | None, wrong: str
) -> None:
    assert WANTED.deployment
    book = book_of(RunbookStep("s", "e", on_host=on_host), target="host")
    scope = scope_of(book, WANTED.deployment, INVENTORY.hosts, "h3", must=True)
    (move,) = moves(book, scope, WANTED.deployment)
    seen = look(Saying(said, status), move)
    if wrong:
        assert isinstance(seen, Problem)
        assert wrong in seen.what
        assert seen.where == "h3"
    else:
        assert seen == (("h3", said),)


def journal_in(runs: Path) -> Journal:
    return open_journal(runs, flow="runbook", cluster="small", argv=["runbook"], data_digest="d")


def test_a_run_that_stopped_is_gone_on_with_for_an_hour(tmp_path: Path) -> None:
    def found(after_s: float = 0.0, digest: str = "d1") -> frozenset[str] | None:
        from time import time

        before = earlier(tmp_path, cluster="small", digest=digest, now_s=time() + after_s)
        return before.done if before else None

    assert found() is None
    journal = journal_in(tmp_path)
    journal(Event("move-done", subject="1", data={"digest": "d1"}))
    journal(Event("move-failed", "no", subject="2", data={"digest": "d1"}))
    assert found() == {"1"}, "also where the controller was killed"
    journal.end(1, ())
    assert (found(), found(3700), found(digest="d2")) == ({"1"}, None, None)
    other = journal_in(tmp_path)
    other(Event("move-done", subject="1", data={"digest": "d2"}))
    other.end(0, ())
    assert (found(), found(digest="d2")) == ({"1"}, None), "what came to its end is begun anew"


def test_moves_that_changed_are_others() -> None:
    assert WANTED.deployment
    digests = set()
    for target in ("decode-0", "decode-1"):
        scope = scope_of(book_of(*STEPS), WANTED.deployment, INVENTORY.hosts, target, must=True)
        digests.add(digest_of(moves(book_of(*STEPS), scope, WANTED.deployment)))
    assert len(digests) == 2
    assert "h1" in HOSTS


def test_a_step_that_this_build_cannot_do_is_refused_before_the_first() -> None:
    assert WANTED.deployment
    book = book_of(STEPS[0], RunbookStep("s", "e", do="dsv32-launch levitate {{instance}}"))
    scope = scope_of(book, WANTED.deployment, INVENTORY.hosts, "decode-0", must=True)
    with pytest.raises(InputError, match="step 2 needs `dsv32-launch levitate`"):
        refuse_missing(book, moves(book, scope, WANTED.deployment))


LASTING = (
    RunbookStep("hold", "e", do="dsv32-launch lock --for 4h"),
    RunbookStep("away", "e", do='dsv32-launch drain {{instance}} -m "a driver"'),
    RunbookStep("stop", "e", do="dsv32-launch down --limit {{host}}"),
    RunbookStep("look", "e", do="dsv32-launch status"),
    RunbookStep("start", "e", do="dsv32-launch up --limit {{host}}"),
    RunbookStep("back", "e", do="dsv32-launch undrain {{instance}}"),
    RunbookStep("free", "e", do="dsv32-launch unlock"),
)
HELD = ("1", "the fleet is held by you", "unlock", True)
AWAY = ("2", "decode-0 gets no requests", "undrain decode-0", True)
DOWN = tuple((f"3 {h}", f"{h} is stopped", f"up --limit {h}", True) for h in ("h2", "h3"))


@pytest.mark.parametrize(
    ("done", "begun", "leaves"),
    [
        ((), "", []),
        ((), "1", [(*HELD[:3], False)]),
        (("1",), "", [HELD]),
        (("1",), "2", [(*AWAY[:3], False), HELD]),
        (("1", "2", "3 h2"), "3 h3", [(*DOWN[1][:3], False), DOWN[0], AWAY, HELD]),
        (("1", "2", "3 h2", "3 h3"), "4", [DOWN[1], DOWN[0], AWAY, HELD]),
        (("1", "2", "3 h2", "3 h3", "4", "5 h2"), "5 h3", [DOWN[1], AWAY, HELD]),
        (("1", "2", "3 h2", "3 h3", "4", "5 h2", "5 h3"), "6", [AWAY, HELD]),
        (("1", "2", "3 h2", "3 h3", "4", "5 h2", "5 h3", "6"), "7", [HELD]),
        (("1", "2", "3 h2", "3 h3", "4", "5 h2", "5 h3", "6", "7"), "", []),
    ],
)
def test_what_a_run_leaves_and_what_ends_it(
    done: tuple[str, ...], begun: str, leaves: list[tuple[str, str, str, bool]]
) -> None:
    assert WANTED.deployment
    book = book_of(*LASTING)
    scope = scope_of(book, WANTED.deployment, INVENTORY.hosts, "decode-0", must=True)
    planned = moves(book, scope, WANTED.deployment)
    found = left(planned, done, next((m for m in planned if m.id == begun), None))
    assert [(x.move.id, x.what, " ".join(x.ends.words), x.sure) for x in found] == leaves
    commands = [complete(x.ends, book, WANTED, data_dir=Path("mine")) for x in found]
    assert all(INVENTORY.path in words and "runbook b" in words for words in commands), "as they are typed"


def test_all_that_is_stopped_is_started_by_one_command() -> None:
    assert WANTED.deployment
    steps = (RunbookStep("s", "e", do="dsv32-launch down"), RunbookStep("s", "e", do="dsv32-launch up"))
    whole = book_of(*steps, target="fleet")
    scope = scope_of(whole, WANTED.deployment, INVENTORY.hosts, "", must=True)
    planned = moves(whole, scope, WANTED.deployment)
    assert [(x.what, x.ends.words) for x in left(planned, ("1",))] == [("everything is stopped", ("up",))]
    assert left(planned, ("1", "2")) == ()
