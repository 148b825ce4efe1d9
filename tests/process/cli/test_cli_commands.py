"""Every command: --json, help, exit codes, problems for people and for programs. Each is a real process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import PLAIN, launch
from samples import ROOT
from typer.main import get_command

from launcher.cli.app import app
from launcher.model.problem import Exit

FORM = """\
cluster: small
stack: current
interface: eth0
paths: {shared: /gpfs, local: /nvme}
hosts:
  gpu01: {address: 127.0.0.1}
"""


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """Two hosts that answer no SSH, one inventory in inventories/."""
    path = tmp_path / "inventories" / "small.yaml"
    path.parent.mkdir()
    path.write_text(FORM)
    return path


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("tune", "--from", "article-prefill", "--into", "inventories/small.yaml/x"), "cannot write there"),
        (("tune", "--from", "article-prefill", "--sla", "x"), "records keep the service level"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_done(
    inventory: Path, words: tuple[str, ...], says: str
) -> None:
    done = launch(*words, folder=inventory.parents[1])
    assert done.returncode == Exit.INPUT_WRONG
    assert says in done.stderr


def test_definitions_ask_no_host(tmp_path: Path) -> None:
    done = launch("bench", "--definitions", folder=tmp_path)
    assert done.returncode == 0
    assert "TPOT: (E2E − TTFT) / (tokens of the answer − 1)" in done.stdout


def test_upgrade_compares_without_asking_a_host(inventory: Path) -> None:
    words = ("upgrade", "--to", "article-0.14", "--offline", "--json")
    done = launch(*words, folder=inventory.parents[1])
    (told,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, told["type"], told["stack"]) == (0, "comparison", ["current", "article-0.14"])
    assert inventory.read_text() == FORM
    same = launch("upgrade", "--to", "current", "--offline", folder=inventory.parents[1])
    assert same.returncode == Exit.INPUT_WRONG
    assert "says stack current already" in same.stderr


def commands() -> list[tuple[str, object]]:
    return list(all_commands())


def all_commands() -> Iterator[tuple[str, object]]:
    group = get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        yield from ((f"{name} {n}", c) for n, c in inner.items()) if inner else [(name, command)]


@pytest.mark.parametrize(("name", "command"), commands(), ids=lambda v: v if isinstance(v, str) else "")
def test_every_command_speaks_json(name: str, command: object) -> None:
    options = {o for p in command.params for o in p.opts}  # type: ignore[attr-defined]
    assert "--json" in options


def test_exit_codes_of_the_help_are_those_of_the_code(tmp_path: Path) -> None:
    told = launch("--help", folder=tmp_path).stdout
    for code in Exit:
        assert f" {int(code)} " in " ".join(told.split()), code


def test_the_only_inventory_needs_no_name(inventory: Path, tmp_path: Path) -> None:
    told = launch("lint", "--json", folder=tmp_path)
    assert told.returncode == Exit.DONE, told.stderr
    last = json.loads(told.stdout)
    assert (last["type"], last["subject"], last["exit"]) == ("lint", "inventories/small.yaml", 0)

    (inventory.parent / "other.yaml").write_text(FORM)
    told = launch("lint", folder=tmp_path)
    assert told.returncode == Exit.INPUT_WRONG
    assert "inventories/ holds 2: other.yaml, small.yaml" in told.stderr


def test_problems_go_to_people_and_programs(inventory: Path, tmp_path: Path) -> None:
    inventory.write_text(FORM + "poools: {}\n")
    told = launch("plan", "--json", folder=tmp_path)

    assert told.returncode == Exit.INPUT_WRONG
    (problem,) = map(json.loads, told.stdout.splitlines())
    assert problem["type"] == "problem"
    assert problem["where"] == "inventories/small.yaml:7"
    assert "error: " in told.stderr
    assert "  where  inventories/small.yaml:7" in told.stderr
    assert "Traceback" not in told.stderr


def test_an_offline_plan_finds_changes_and_asks_no_host(inventory: Path, tmp_path: Path) -> None:
    told = launch("plan", "--offline", "--json", folder=tmp_path)

    assert told.returncode == Exit.CHANGES, told.stderr
    kinds = [json.loads(line)["type"] for line in told.stdout.splitlines()]
    assert {"change", "plan", "step"} <= set(kinds)


def test_without_a_terminal_nothing_is_changed_unasked(inventory: Path, tmp_path: Path) -> None:
    for command in ("up", "down"):
        told = launch(command, folder=tmp_path)
        assert told.returncode == Exit.INPUT_WRONG
        assert "--yes" in told.stderr
        assert not (tmp_path / "runs").exists()


def test_a_flag_may_be_explained_with_its_dashes(tmp_path: Path) -> None:
    hosts = ("--hosts", "gpu[01-06]", "--addresses", "10.0.0.[11-16]")
    written = launch("init", "small", *hosts, "--to", "small.yaml", folder=tmp_path)
    assert written.returncode == Exit.DONE, written.stderr
    with_them, without = (
        launch("explain", subject, "small.yaml", folder=tmp_path)
        for subject in ("--max-num-seqs", "max-num-seqs")
    )
    assert with_them.returncode == Exit.DONE, with_them.stderr
    assert with_them.stdout == without.stdout != ""


def test_an_unreached_host_is_a_failed_plan(inventory: Path, tmp_path: Path) -> None:
    (tmp_path / "ssh_config").write_text("Host gpu01\n  HostName 127.0.0.1\n  Port 1\n")
    inventory.write_text(FORM + f"ssh: {{config: {tmp_path}/ssh_config}}\n")
    told = launch("plan", folder=tmp_path)

    assert told.returncode == Exit.HOSTS_FAILED
    assert "gpu01" in told.stderr


def test_limit_names_what_is_unknown(inventory: Path, tmp_path: Path) -> None:
    told = launch("plan", "--offline", "--limit", "gpu1", folder=tmp_path)

    assert told.returncode == Exit.INPUT_WRONG
    assert "did you mean `gpu01`?" in told.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "--offline", "--out", "."),
        ("plan", "--offline", "--out", "nowhere/plan"),
        ("up", "--plan", "nowhere"),
        ("up", "--plan", "."),
        ("up", "--plan", "binary"),
        ("init", "a b", "--hosts", "gpu[1-6]"),
        ("stack", "build", "sandbox-cpu", "--to", "binary"),
        ("status", "--watch", "--every", "-1"),
        ("logs", "-n", "-1"),
    ],
    ids=" ".join,
)
def test_an_argument_that_cannot_be_is_no_bug_of_ours(
    words: tuple[str, ...], inventory: Path, tmp_path: Path
) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    done = launch(*words, folder=tmp_path)
    assert done.returncode == Exit.INPUT_WRONG, done.stderr
    assert "bug" not in done.stderr


def test_what_is_written_may_have_nowhere_to_go(inventory: Path, tmp_path: Path) -> None:
    def plan(redirection: str, **variables: str) -> tuple[int, str]:
        command = f"exec {sys.executable} -m launcher.cli.main plan --offline {redirection}"
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=tmp_path,
            env={**os.environ, **PLAIN, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stderr

    assert plan(">&-") == (Exit.CHANGES, "")
    assert plan("", PYTHONIOENCODING="ascii") == (Exit.CHANGES, "")
    for form in ("", "--json"):
        code, told = plan(f"{form} >/dev/full")
        assert code == Exit.HOSTS_FAILED
        assert told.startswith("error: this machine cannot write: no space left on device\n")


def test_a_bug_of_ours_is_one_line_and_a_file(tmp_path: Path) -> None:
    (tmp_path / "runs" / "r1").mkdir(parents=True)
    (tmp_path / "runs" / "r1" / "run.json").write_text("{}")
    told = launch("runs", folder=tmp_path)

    assert told.returncode == Exit.HOSTS_FAILED
    first, second = told.stderr.splitlines()
    assert first.startswith("error: this is a bug of dsv32-launch: KeyError")
    saved = Path(second.split(maxsplit=1)[1])
    assert "Traceback" in saved.read_text()
    saved.unlink()


def test_interrupted_while_looking_ends_at_once(inventory: Path, tmp_path: Path) -> None:
    # a port that takes connections and never says a word
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]
        (tmp_path / "ssh_config").write_text(f"Host gpu01\n  HostName 127.0.0.1\n  Port {port}\n")
        inventory.write_text(FORM + f"ssh: {{config: {tmp_path}/ssh_config, connect_within_s: 60}}\n")
        command = [sys.executable, "-m", "launcher.cli.main", "plan"]
        with subprocess.Popen(
            command, cwd=tmp_path, env=os.environ | PLAIN, stderr=subprocess.PIPE, text=True
        ) as process:
            deaf.settimeout(60)
            link, _ = deaf.accept()
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=30)
            link.close()

    assert process.returncode == Exit.INTERRUPTED
    assert "nothing was changed" in told


def test_the_words_of_all_commands(golden: Callable[[Path, str], None]) -> None:
    # what help says, without how this release of typer draws it
    pages = [f"{name}\n{page(command)}" for name, command in commands()]
    golden(ROOT / "tests/fast/golden/help/commands.txt", "\n".join(pages))


def page(command: Any) -> str:
    rows = [f"  {command.help}"]
    for p in command.params:
        if p.name != "help":
            words = " ".join([*p.opts, *p.secondary_opts]) if p.param_type_name == "option" else p.metavar
            rows.append(f"    {words}: {p.help}")
    return "\n".join(row.rstrip() for row in rows) + "\n"
