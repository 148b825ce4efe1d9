"""What fabric itself cannot open, as one problem."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.model.inventory import Host, SshSettings
from launcher.model.problem import LauncherError
from launcher.remote.route import Routes
from launcher.remote.ssh import Ssh


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ("", "gpu01 refuses connections on port 1"),
        ("Host gpu01\n ProxyCommand no-such-program %h\n", "the ProxyCommand for gpu01 cannot be started"),
        ('Host gpu01\n ProxyCommand nc "%h\n', "the ProxyCommand for gpu01 cannot be started"),
    ],
)
def test_fabric_itself_fails_to_open_a_connection(tmp_path: Path, config: str, what: str) -> None:
    (tmp_path / "config").write_text(config)
    settings = SshSettings(config="config", port=1)
    route = Routes(settings, tmp_path).to(Host("gpu01", "127.0.0.1", "lo", "prod.yaml:3"))
    with pytest.raises(LauncherError) as refused:
        Ssh(settings, tmp_path).connect(route)
    assert refused.value.problems[0].what == what
