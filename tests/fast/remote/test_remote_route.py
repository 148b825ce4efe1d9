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


def keys_tried(found: Route) -> list[str]:
    """The keys that fabric would try to log in with, as people are told of them."""
    connection = found.connection
    login = connection.authentication.strategy_class(
        ssh_config=connection.ssh_config, fabric_config=connection.config, username=connection.user
    )
    return [f"{name} ({why})" for name, why in login.candidates()]


@pytest.fixture(autouse=True)
def no_ssh_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def test_the_inventory_alone(tmp_path: Path) -> None:
    found = route(tmp_path, "", known_hosts="prod.known_hosts", identity="key", port=2222)
    assert str(found.place) == "gpu01, root@10.0.0.11:2222"
    assert found.key_names == ("[10.0.0.11]:2222", "[gpu01]:2222")
    assert found.known_hosts == ("prod.known_hosts", "~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts")
    assert keys_tried(found) == ["key (no such file)"]
    assert found.gateway is None
    assert not found.connection.gateway


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
    assert keys_tried(found) == ["key (no such file)", "/keys/a (no such file)"]


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
    # fabric goes this way when it opens the first of them
    assert found.connection.gateway is found.gateway.connection
    assert found.gateway.connection.gateway is found.gateway.gateway.connection


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
    assert [keys_tried(routes.to(h)) for h in (HOST, other, HOST)] == [
        ["/keys/one (no such file)"],
        ["/keys/two (no such file)"],
        ["/keys/one (no such file)"],
    ]


def test_the_inventorys_identity_is_not_tried_at_a_jump_host(tmp_path: Path) -> None:
    config = "Host bastion\n IdentityFile /keys/bastion\n"
    found = route(tmp_path, config, jump="bastion", identity="/keys/fleet", port=2222, user="ops")
    assert found.gateway
    assert keys_tried(found) == ["/keys/fleet (no such file)"]
    assert keys_tried(found.gateway) == ["/keys/bastion (no such file)"]
    assert found.gateway.place.port == 22
    assert found.gateway.place.user != "ops"


def test_hosts_behind_one_jump_host_share_its_connection(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("")
    routes = Routes(SshSettings(config="config", jump="bastion"), tmp_path)
    other = Host("gpu02", "10.0.0.12", "bond0", "prod.yaml:4")
    one, two = routes.to(HOST), routes.to(other)
    assert one.connection is not two.connection
    assert one.connection.gateway is two.connection.gateway
    assert one.connection.gateway


def test_a_proxy_command_is_filled_in(tmp_path: Path) -> None:
    found = route(tmp_path, "Host gpu01\n HostName 192.0.2.7\n ProxyCommand nc -x proxy %h %p\n")
    assert found.connection.gateway == "nc -x proxy 192.0.2.7 22"
    assert found.place.through == "ProxyCommand"


def test_a_jump_host_comes_before_a_proxy_command(tmp_path: Path) -> None:
    found = route(tmp_path, "Host gpu01\n ProxyCommand nc %h %p\n", jump="bastion")
    assert found.gateway
    assert found.connection.gateway is found.gateway.connection


def test_what_ssh_config_says_to_ssh_alone_is_passed_over(tmp_path: Path) -> None:
    # fabric reads numbers and yes or no where ssh takes more than these
    found = route(tmp_path, "Host *\n ConnectTimeout none\n ForwardAgent $SSH_AUTH_SOCK\n")
    assert str(found.place) == "gpu01, root@10.0.0.11:22"


def test_an_ssh_config_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no ssh_config"):
        Routes(SshSettings(config="none"), tmp_path)


@pytest.mark.parametrize(
    ("config", "what", "why"),
    [
        ("Match nonsense\n", "ssh_config cannot be read", "nonsense"),
        ("Host gpu01\n Port ssh\n", "`gpu01` cannot be looked up in ssh_config", "'ssh'"),
        ("Host gpu01\n ProxyJump hop:ssh\n", "`hop:ssh` cannot be looked up in ssh_config", "'ssh'"),
    ],
)
def test_an_ssh_config_that_is_wrong(tmp_path: Path, config: str, what: str, why: str) -> None:
    with pytest.raises(InputError) as wrong:
        route(tmp_path, config)
    problem = wrong.value.problems[0]
    assert (problem.what, problem.where) == (what, str(tmp_path / "config"))
    assert why in problem.why
    assert f"ssh -G -F {tmp_path / 'config'}" in problem.do
