"""What fabric and paramiko raise, as one Problem; fabric itself opens connections in tests/hosts/remote."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import paramiko
import pytest
from paramiko.auth_strategy import AuthFailure, AuthResult, SourceResult
from paramiko.ssh_exception import NoValidConnectionsError

from launcher.model.inventory import SshSettings
from launcher.model.problem import LauncherError, Problem
from launcher.remote.faults import PROXY_COMMAND, Place
from launcher.remote.login import Key, Keys, Login
from launcher.remote.route import Route
from launcher.remote.ssh import Attempt, Ssh, ThrottledError

PLACE = Place("gpu01", "root", "10.0.0.11", 22)
BEHIND = replace(PLACE, through="bastion")
BY_PROGRAM = replace(PLACE, through=PROXY_COMMAND)
AT = ("10.0.0.11", 22)


def failed(place: Place, problem: Exception) -> Problem:
    found = Attempt(place, [], 15).failed(problem)
    assert isinstance(found, LauncherError)
    return found.problems[0]


@pytest.mark.parametrize(
    ("place", "raised", "what"),
    [
        (PLACE, socket.gaierror(), "`10.0.0.11` is no address that this machine can resolve"),
        (PLACE, UnicodeError("label empty"), "`10.0.0.11` is no address that this machine can resolve"),
        (PLACE, PermissionError(1, "Operation not permitted"), "no route to gpu01"),
        (PLACE, TimeoutError(), "gpu01 does not answer on port 22 within 15 s"),
        (
            PLACE,
            NoValidConnectionsError({AT: ConnectionRefusedError()}),
            "gpu01 refuses connections on port 22",
        ),
        (PLACE, NoValidConnectionsError({AT: OSError(113, "No route to host")}), "no route to gpu01"),
        (PLACE, OSError(101, "Network is unreachable"), "no route to gpu01"),
        (BEHIND, paramiko.ChannelException(2, "failed"), "jump host bastion does not reach gpu01"),
        (BEHIND, paramiko.SSHException("Timeout"), "gpu01 does not answer on port 22 within 15 s"),
        (BY_PROGRAM, FileNotFoundError("nc"), "the ProxyCommand for gpu01 cannot be started"),
        (BY_PROGRAM, ValueError("No closing quotation"), "the ProxyCommand for gpu01 cannot be started"),
    ],
)
def test_a_host_that_is_not_reached(place: Place, raised: Exception, what: str) -> None:
    problem = failed(place, raised)
    assert problem.what == what
    assert problem.where == str(place)
    assert problem.do


def refused(*tried: Key) -> AuthFailure:
    result = AuthResult(None)  # type: ignore[arg-type]
    result.extend(SourceResult(key, paramiko.AuthenticationException()) for key in tried)
    return AuthFailure(result)


def test_a_refused_login_names_each_key_and_why_it_was_of_no_use() -> None:
    tried = [Key("root", "/keys/a", "no such file"), Key("root", "/keys/b", paramiko.RSAKey.generate(1024))]
    problem = failed(PLACE, refused(*tried))
    assert problem.what == "gpu01 lets `root` in with none of 2 keys"
    assert problem.why == "tried: /keys/a (no such file); /keys/b"


def test_no_key_at_all() -> None:
    assert failed(PLACE, refused()).what == "there is no key to log in to gpu01 with"


class Transport:
    """What a login needs of paramiko's; `answers`: for each key, the further factors that the host wants."""

    def __init__(self, *answers: Exception | list[str], hears: int = 9) -> None:
        self.auth_timeout = 15.0
        self.tried: list[object] = []
        self._answers = answers
        self._hears = hears

    def is_active(self) -> bool:
        return len(self.tried) < self._hears

    def auth_publickey(self, user: str, key: object) -> list[str]:
        answer = self._answers[len(self.tried)]
        self.tried.append((user, key))
        if isinstance(answer, Exception):
            raise answer
        return answer


class TwoKeys(Keys):
    """`a` and `b` can be read."""

    def read(self, path: str) -> Any:
        return f"key {path}" if path == "broken" else path.encode()


def login(*paths: str) -> Login:
    config = SimpleNamespace(authentication=SimpleNamespace(identities=["a"]))
    return Login(TwoKeys(Path()), {"identityfile": paths, "identitiesonly": "yes"}, config, "ana")


def test_keys_are_tried_in_order_until_one_is_taken() -> None:
    transport: Any = Transport(paramiko.AuthenticationException(), [])
    login("broken", "b", "c").authenticate(transport)
    assert transport.tried == [("ana", b"a"), ("ana", b"b")]


def test_a_host_that_wants_a_second_factor_lets_nobody_in() -> None:
    transport: Any = Transport(["password"], ["password"])
    with pytest.raises(AuthFailure) as refused:
        login("b").authenticate(transport)
    assert "second factor" in str(refused.value)


def test_no_key_is_tried_at_a_host_that_has_hung_up() -> None:
    transport: Any = Transport(paramiko.AuthenticationException(), [], hears=1)
    with pytest.raises(AuthFailure) as refused:
        login("b").authenticate(transport)
    assert [str(tried.source) for tried in refused.value.result] == ["a"]


class Connection:
    """What we use of fabric's; `open` does what it is told."""

    def __init__(self, gateway: Connection | None, *opens: Exception | None) -> None:
        self.gateway = gateway
        self.is_connected = False
        self.transport = None
        self.connect_kwargs: dict[str, object] = {}
        self.opened = 0
        self.client = SimpleNamespace(close=self.close, set_missing_host_key_policy=lambda policy: None)
        self._opens = opens

    def open(self) -> None:
        problem = self._opens[self.opened]
        self.opened += 1
        if problem:
            raise problem
        self.is_connected = True

    def close(self) -> None:
        self.is_connected = False


def routes(gateway: Connection, *hosts: Connection) -> list[Route]:
    bastion = Route(Place("bastion", "root", "bastion", 22), gateway, (), (), None)
    return [Route(BEHIND, host, (), (), bastion) for host in hosts]


def test_a_jump_host_is_connected_once_and_closed_at_the_end() -> None:
    bastion = Connection(None, None)
    hosts = [Connection(bastion, None) for _ in range(3)]
    ssh = Ssh(SshSettings(), Path())
    wires = [ssh.connect(route) for route in routes(bastion, *hosts)]
    assert bastion.opened == 1
    wires[0].close()
    assert [host.is_connected for host in hosts] == [False, True, True]
    assert bastion.is_connected
    ssh.close()
    assert not bastion.is_connected


def test_a_jump_host_that_fails_is_asked_once_for_all_hosts_behind_it() -> None:
    bastion = Connection(None, NoValidConnectionsError({AT: ConnectionRefusedError()}))
    ssh = Ssh(SshSettings(), Path())
    for route in routes(bastion, Connection(bastion), Connection(bastion)):
        with pytest.raises(LauncherError) as refused:
            ssh.connect(route)
        assert refused.value.problems[0].what == "bastion refuses connections on port 22"
        assert refused.value.problems[0].where.endswith("on the way to gpu01")
    assert bastion.opened == 1


def test_a_jump_host_that_is_lost_meanwhile_is_not_taken_for_the_host() -> None:
    bastion = Connection(None, None)

    class Lost(Connection):
        def open(self) -> None:
            bastion.close()
            raise EOFError

    with pytest.raises(LauncherError) as lost:
        Ssh(SshSettings(), Path()).connect(routes(bastion, Lost(bastion))[0])
    assert lost.value.problems[0].what == "connection to bastion lost"


def test_a_program_that_ends_before_sshd_answers_is_not_taken_for_sshd() -> None:
    attempt = Attempt(BY_PROGRAM, [], 15)
    attempt._transport = SimpleNamespace(remote_version="")  # type: ignore[assignment]
    found = attempt.failed(EOFError())
    assert isinstance(found, ThrottledError)
    assert "ProxyCommand" in found.problem.why
    assert found.problem.do.startswith("`ssh root@gpu01`")
