"""configs/runbooks: each step can be done as it is written, for everything that it may be run for."""

from __future__ import annotations

import re

import pytest
from samples import ROOT
from typer.main import get_command

from launcher.cli.app import app
from launcher.cli.runbookrun import complete
from launcher.cli.runbooktext import book_lines, page
from launcher.flows.runbook import Move, moves, names_of, scope_of
from launcher.load import load
from launcher.load.data import Data, shipped
from launcher.load.runbooks import read_runbooks
from launcher.load.signatures import read_log_knowledge
from launcher.model.runbook import VERBS, Runbook
from launcher.resolve import resolve

DATA = Data((shipped(),))
BOOKS = read_runbooks(DATA)
WANTED = resolve(load(ROOT / "inventories/prod-2p1d.yaml", data_dir=None, environment=None))
DEPLOYMENT, HOSTS = WANTED.deployment, WANTED.wish.inventory.hosts
COMMANDS = get_command(app).commands  # type: ignore[attr-defined]
READ_ONLY = {
    *("journalctl", "ls", "lsmod", "nvidia-smi", "sh", "ss", "systemctl", "timedatectl", "timeout", "uptime"),
}
WRITES = re.compile(
    r">(?!&|/dev/null)|\b(rm|mv|kill|reboot|reset|tee|modprobe|mount|start|stop|restart|set-\w+)\b|vacuum"
)
ASKED_FOR = {
    *("engine-crash", "rank-hung", "gpu-xid", "nic-down", "nixl-failures", "kv-expiry", "gibberish"),
    *("gpu-out-of-memory", "host-out-of-memory", "slow-prefill", "slow-decode", "router-503", "gpfs-stall"),
    *("host-reboot", "driver-update", "full-restart", "disk-full", "clock-skew"),
}


def all_moves(book: Runbook) -> list[Move]:
    """The moves for everything that it may be run for, and those for the wall."""
    assert DEPLOYMENT is not None
    targets = ["", *names_of(book, DEPLOYMENT, HOSTS)]
    scopes = [scope_of(book, DEPLOYMENT, HOSTS, target, must=False) for target in targets]
    return [move for scope in scopes for move in moves(book, scope, DEPLOYMENT)]


def test_what_is_called_for_is_there() -> None:
    assert BOOKS.keys() >= ASKED_FOR


@pytest.mark.parametrize("book", BOOKS.values(), ids=lambda b: b.id)
def test_every_command_is_one(book: Runbook) -> None:
    for move in all_moves(book):
        if not move.words:
            continue
        assert move.words[0] in VERBS
        if command := COMMANDS.get(move.words[0]):
            words = complete(move, book, WANTED, data_dir=None)
            command.make_context(words[0], [*words[1:]], resilient_parsing=False)
            assert ("-m" in words) == any("--why" in p.opts for p in command.params)


@pytest.mark.parametrize("book", BOOKS.values(), ids=lambda b: b.id)
def test_hosts_are_only_looked_at(book: Runbook) -> None:
    for step in book.steps:
        if step.on_host:
            assert step.on_host.run[0] in READ_ONLY, step.source
            assert not WRITES.search(" ".join(step.on_host.run)), step.source


@pytest.mark.parametrize("book", BOOKS.values(), ids=lambda b: b.id)
def test_nothing_is_taken_down_unasked(book: Runbook) -> None:
    """The first step that takes something away asks before whether somebody else is at work."""
    takes = [s for s in book.steps if s.do.split()[1:2] in (["down"], ["restart"], ["drain"])]
    assert not takes or takes[0].only_if, takes[0].source


@pytest.mark.parametrize("book", BOOKS.values(), ids=lambda b: b.id)
def test_a_page_has_names_and_no_holes(book: Runbook) -> None:
    assert DEPLOYMENT is not None
    for target in ("", *names_of(book, DEPLOYMENT, HOSTS)):
        scope = scope_of(book, DEPLOYMENT, HOSTS, target, must=False)
        planned = moves(book, scope, DEPLOYMENT)
        told = "\n".join(page(book, scope, DEPLOYMENT, [(m, m.words) for m in planned], BOOKS))
        assert "{{" not in told
        assert ("INSTANCE" in told or "HOST" in told or "POOL" in told) == (
            not target and book.target != "fleet"
        )
    assert "{{" in "\n".join(book_lines(book)) or book.target == "fleet"


def test_most_signatures_that_are_no_edit_lead_to_a_runbook() -> None:
    linked = {name for book in BOOKS.values() for name in book.signatures}
    edits = ("in the inventory", "in the stack", "in the layout")
    causes = [
        s for s in read_log_knowledge(DATA).signatures if s.role == "cause" and not s.do.startswith(edits)
    ]
    without = [s.id for s in causes if s.id not in linked]
    assert len(without) <= len(causes) / 3, without
