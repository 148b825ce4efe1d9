"""The agent's ops on temporary folders; what needs systemd or apt is tested on real hosts."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from launcher.remote.agent import Runner
from launcher.remote.agent_ops import Ops, Record, obeyed


@pytest.fixture
def do(tmp_path: Path) -> Any:
    """Do one op; its record goes below the test's folder."""

    def one(verb: str, content: bytes | None = None, **args: Any) -> dict[str, Any]:
        ops = Ops({"digest": content or b""}, Runner(), root=str(tmp_path))
        op = {"op": verb, "args": args, **({} if content is None else {"sha256": "digest"})}
        return ops.do(op, Record({"who": "ana", "run": "r1"}, str(tmp_path)))

    return one


GUARD = {"order": "r1", "offered": "r1", "phase": "run", "alive": True, "waits": "", "ends": []}


@pytest.mark.parametrize(
    ("word", "run", "active", "done"),
    [
        ({}, "r1", "active", True),
        ({"order": "r0"}, "r1", "active", False),
        ({}, "r1", "inactive", False),
        ({"phase": "clean"}, "r1", "active", False),
        ({"phase": "stop", "ends": [{"order": "r1", "when": 100.0}]}, "r1", "failed", True),
        ({"phase": "clean", "ends": [{"order": "r1", "when": 99.0}]}, "r1", "inactive", False),
        ({}, "", "inactive", False),
        ({"order": "", "offered": "", "phase": "clean", "alive": False}, "", "inactive", True),
        ({"order": "", "offered": "", "phase": "stop"}, "", "inactive", False),
    ],
)
def test_an_order_is_obeyed_when_that_process_runs_or_has_ended(
    word: dict[str, Any], run: str, active: str, done: bool
) -> None:
    assert obeyed({**GUARD, **word}, run, active, 100.0) is done


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_put_makes_parents_and_sets_mode_and_owner(do: Any, tmp_path: Path) -> None:
    path = tmp_path / "a/b/file"
    assert do("put", b"one", path=str(path), mode="0640", owner="nobody", group="daemon") == {"ok": True}
    assert (path.read_bytes(), mode_of(path), path.owner(), path.group()) == (
        b"one",
        0o640,
        "nobody",
        "daemon",
    )
    assert os.listdir(path.parent) == ["file"]


def test_put_replaces_a_link_and_never_writes_through_it(do: Any, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "file").symlink_to("precious")
    assert do("put", b"new", path=str(tmp_path / "file"))["ok"]
    assert (tmp_path / "precious").read_text() == "kept"
    assert not (tmp_path / "file").is_symlink()


def test_put_that_fails_leaves_nothing_behind(do: Any, tmp_path: Path) -> None:
    (tmp_path / "folder/below").mkdir(parents=True)
    result = do("put", b"new", path=str(tmp_path / "folder"))
    assert result["error"]["errno"] == errno.EISDIR
    assert do("put", b"new", path=str(tmp_path / "x"), owner="no-such-user")["error"]["text"].startswith(
        "no user"
    )
    assert sorted(os.listdir(tmp_path)) == ["folder", "var"]


def test_what_the_kernel_refuses_is_told_by_number(do: Any) -> None:
    error = do("put", b"x", path="/proc/none")["error"]
    assert error == {"text": error["text"], "errno": errno.ENOENT, "exit": None, "tail": ""}


def test_folder_link_attributes_remove(do: Any, tmp_path: Path) -> None:
    folder, link = tmp_path / "x/folder", tmp_path / "x/link"
    assert do("folder", path=str(folder), mode="0700", owner="root", group="root")["ok"]
    assert do("link", path=str(link), target="old")["ok"]
    assert do("link", path=str(link), target="folder")["ok"]
    assert (mode_of(folder), os.readlink(link)) == (0o700, "folder")
    assert do("attributes", path=str(folder), mode="0711")["ok"]
    assert mode_of(folder) == 0o711
    (folder / "file").touch()
    assert do("remove", path=str(link))["ok"]
    assert (folder / "file").exists()
    assert do("remove", path=str(folder))["ok"]
    assert do("remove", path=str(folder))["ok"]
    assert os.listdir(tmp_path / "x") == []


@pytest.mark.parametrize("path", ["/etc", "/usr/", "/", "/var/../opt"])
def test_folders_of_the_system_are_never_removed(do: Any, path: str) -> None:
    assert "of the system itself" in do("remove", path=path)["error"]["text"]


def test_sysctl_keeps_the_other_lines(do: Any, tmp_path: Path) -> None:
    file = tmp_path / "90.conf"
    file.write_text("# ours\nvm.none=1\nvm.none = 2\nvm.other = 3\n")
    assert do("sysctl", file=str(file), key="vm.none", value="4")["ok"]
    assert file.read_text() == "# ours\nvm.other = 3\nvm.none = 4\n"


def test_command(do: Any) -> None:
    assert do("command", words=["sh", "-c", '[ "$A" = b ]'], within_s=5, environment={"A": "b"})["ok"]
    error = do("command", words=["sh", "-c", "echo last words >&2; exit 7"], within_s=5)["error"]
    assert (error["exit"], error["tail"]) == (7, "last words")
    late = do("command", words=["sleep", "60"], within_s=0.3)["error"]
    assert (late["exit"], late["text"]) == (None, "sleep took longer than 0.3 s")


def test_verbs_are_a_closed_set(do: Any) -> None:
    for verb in ("do", "_follow", "shell"):
        assert do(verb)["error"]["text"] == f"no op is called {verb}"


def test_the_record_has_who_what_and_how_but_no_content(do: Any, tmp_path: Path) -> None:
    do("put", b"very secret", path=str(tmp_path / "file"), mode="0600")
    do("remove", path="/etc")
    lines = [json.loads(x) for x in (tmp_path / "var/log/dsv32/journal.jsonl").read_text().splitlines()]
    assert [(x["op"], x["target"], x["result"]) for x in lines] == [
        ("put", f"{tmp_path}/file", "begun"),
        ("put", f"{tmp_path}/file", "done"),
        ("remove", "/etc", "begun"),
        ("remove", "/etc", "failed"),
    ]
    assert {(x["who"], x["run"]) for x in lines} == {("ana", "r1")}
    assert "very secret" not in json.dumps(lines)


def test_what_cannot_be_recorded_is_not_done(do: Any, tmp_path: Path) -> None:
    record = Record({"who": "ana"}, str(tmp_path))
    record.close()
    ops = Ops({}, Runner(), root=str(tmp_path))
    result = ops.do({"op": "folder", "args": {"path": str(tmp_path / "x")}}, record)
    assert result["error"]["errno"] == errno.EBADF
    assert not (tmp_path / "x").exists()
