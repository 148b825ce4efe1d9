"""How a host is reached: inventory and ssh_config taken together."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.model.inventory import Host, SshSettings
from launcher.model.problem import InputError
from launcher.remote.route import Route, Routes

HOST = Host("gpu01", "10.0.0.11", "bond0", "prod.yaml:3")


def route(folder: Path, config: str, **settings: object) -> Route:
    (folder / "config").write_text(config)
    return Routes(SshSettings(config="config", **settings), folder).to(HOST)  # type: ignore[arg-type]


def test_the_inventory_alone(tmp_path: Path) -> None:
    found = route(tmp_path, "", known_hosts="prod.known_hosts", identity="key", port=2222)
    assert str(found.place) == "gpu01, root@10.0.0.11:2222"
    assert found.key_names == ("[10.0.0.11]:2222", "[gpu01]:2222")
    assert found.known_hosts == ("prod.known_hosts", "~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts")
    assert found.identities == ("key",)
    assert found.gateway is None


def test_ssh_config_says_more(tmp_path: Path) -> None:
    config = """
Host gpu*
  HostName %h.example
  User ana
  Port 2200
  IdentityFile /keys/a
  IdentitiesOnly yes
  UserKnownHostsFile /known/a /known/b
  HostKeyAlias fleet
"""
    found = route(tmp_path, config, identity="key")
    assert str(found.place) == "gpu01, ana@gpu01.example:2200"
    assert found.key_names == ("fleet",)
    assert found.known_hosts[:2] == ("/known/a", "/known/b")
    assert found.identities == ("key", "/keys/a")
    assert found.only_identities


def test_the_inventorys_user_wins(tmp_path: Path) -> None:
    assert route(tmp_path, "Host *\n User ana\n", user="ops").place.user == "ops"


def test_a_chain_of_jump_hosts(tmp_path: Path) -> None:
    config = "Host gpu01\n ProxyJump ana@outer,inner:23\nHost inner\n User bob\n HostName 10.9.9.9\n"
    found = route(tmp_path, config)
    assert found.gateway
    assert found.gateway.gateway
    assert str(found.place) == "gpu01, root@10.0.0.11:22 through inner"
    assert str(found.gateway.place) == "inner, bob@10.9.9.9:23 through outer"
    assert str(found.gateway.gateway.place) == "outer, ana@outer:22"
    assert found.gateway.gateway.gateway is None


def test_a_pattern_for_all_hosts_does_not_send_the_jump_host_through_itself(tmp_path: Path) -> None:
    found = route(tmp_path, "Host *\n ProxyJump bastion\n")
    assert found.gateway
    assert str(found.gateway.place).endswith("@bastion:22")


def test_the_inventorys_jump_host(tmp_path: Path) -> None:
    found = route(tmp_path, "Host bastion\n HostName 192.0.2.1\n", jump="ana@bastion:2022")
    assert found.gateway
    assert str(found.gateway.place) == "bastion, ana@192.0.2.1:2022"


def test_identities_of_one_host_are_not_tried_at_another(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(
        "Host gpu01\n IdentityFile /keys/one\nHost gpu02\n IdentityFile /keys/two\n"
    )
    routes = Routes(SshSettings(config="config"), tmp_path)
    other = Host("gpu02", "10.0.0.12", "bond0", "prod.yaml:4")
    assert [routes.to(h).identities for h in (HOST, other, HOST)] == [
        ("/keys/one",),
        ("/keys/two",),
        ("/keys/one",),
    ]


def test_an_ssh_config_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no ssh_config"):
        Routes(SshSettings(config="none"), tmp_path)
