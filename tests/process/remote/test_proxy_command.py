"""Programs that ssh_config's ProxyCommand names, run by paramiko."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.model.inventory import Host, SshSettings
from launcher.model.problem import LauncherError
from launcher.remote.route import Routes
from launcher.remote.ssh import Ssh, ThrottledError


def connect(folder: Path, program: str, *, within_s: int) -> None:
    (folder / "config").write_text(f"Host gpu01\n ProxyCommand {program}\n")
    settings = SshSettings(config="config", connect_within_s=within_s)
    route = Routes(settings, folder).to(Host("gpu01", "127.0.0.1", "lo", "prod.yaml:3"))
    Ssh(settings, folder).connect(route)


def test_a_program_that_ends_at_once_may_be_tried_again(tmp_path: Path) -> None:
    with pytest.raises(ThrottledError) as ended:
        connect(tmp_path, "false", within_s=60)
    assert "the ProxyCommand in ssh_config ends before sshd answers" in ended.value.problem.why
    assert ended.value.problem.do.startswith("`ssh root@gpu01`")


def test_a_program_that_says_nothing(tmp_path: Path) -> None:
    with pytest.raises(LauncherError) as silent:
        connect(tmp_path, "sleep 60", within_s=1)
    assert silent.value.problems[0].what == "the ProxyCommand for gpu01 brings no answer within 1 s"
