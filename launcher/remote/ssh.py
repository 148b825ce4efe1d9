"""Ssh, Wire: opens a host's connection, and talks to a command at its other end."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import paramiko
from paramiko.auth_strategy import AuthFailure
from paramiko.ssh_exception import NoValidConnectionsError

from launcher.model.inventory import SshSettings
from launcher.model.problem import LauncherError, Problem
from launcher.remote import faults
from launcher.remote.faults import Place
from launcher.remote.route import Route

CONNECTS_BEHIND_A_JUMP_HOST = 8
"""sshd drops connects at random beyond ten that have not logged in (MaxStartups)."""
SEND_WITHIN_S = 30.0
UNHEARD_S = 20.0
"""What was sent and not acknowledged for so long is lost."""


class ThrottledError(Exception):
    """sshd hung up before its banner, as it does when too many connect at once; worth another try."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.what)
        self.problem = problem


class CountedSocket:
    """A socket, or what paramiko takes for one, that counts its bytes."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.sent = 0
        self.received = 0

    def send(self, data: bytes) -> int:
        count: int = self._inner.send(data)
        self.sent += count
        return count

    def recv(self, size: int) -> bytes:
        data: bytes = self._inner.recv(size)
        self.received += len(data)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class ProgramSocket(CountedSocket):
    """The same for the program of a ProxyCommand; paramiko does not notice its end, and reads on and on."""

    def recv(self, size: int) -> bytes:
        """Some bytes; none at all when the program has ended; TimeoutError."""
        output, within_s = self._inner.process.stdout.fileno(), self._inner.timeout
        ready = select.poll()
        ready.register(output, select.POLLIN)
        if not ready.poll(None if within_s is None else within_s * 1000):
            raise TimeoutError
        data = os.read(output, size)
        self.received += len(data)
        return data


class Wire:
    """A connection and the one command on it that we talk to: a `Stream`."""

    def __init__(self, route: Route) -> None:
        """`route`: one whose connection is open."""
        self._connection = route.connection
        self._transport: paramiko.Transport = route.connection.transport
        self._channel: paramiko.Channel | None = None

    def start(self, command: str, *, within_s: float) -> None:
        """Run the command that `send` and `receive` talk to; OSError if it cannot be."""
        self._channel = self._run(command, within_s)

    def _run(self, command: str, within_s: float) -> paramiko.Channel:
        try:
            channel = self._transport.open_session(timeout=within_s)
            channel.exec_command(command)
        except (paramiko.SSHException, EOFError) as problem:
            raise ConnectionError(str(problem)) from None
        return channel

    @property
    def channel(self) -> paramiko.Channel:
        """The started command's."""
        if self._channel is None:
            raise ConnectionError("nothing was started")
        return self._channel

    def send(self, data: bytes) -> None:
        """All of it; OSError when it cannot be sent."""
        self.channel.settimeout(SEND_WITHIN_S)
        try:
            self.channel.sendall(data)
        except EOFError:
            raise ConnectionError("the connection is gone") from None

    def receive(self, within_s: float) -> bytes | None:
        """Some bytes; none at all at the end; None when nothing came in time."""
        self.channel.settimeout(within_s)
        try:
            return self.channel.recv(1 << 18)
        except TimeoutError:
            return None

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes sent and received, SSH included."""
        counted: Any = self._transport.sock
        return counted.sent, counted.received

    def alive(self) -> bool:
        """The connection itself still stands."""
        return bool(self._connection.is_connected)

    def ending(self, within_s: float) -> tuple[int | None, str]:
        """Exit status of the started command (None: killed, or not told in time), and its stderr."""
        return ending(self.channel, within_s)

    def ask(self, command: str, data: bytes, *, within_s: float) -> int | None:
        """Exit status of another command, in a channel of its own."""
        channel = self._run(command, within_s)
        channel.settimeout(within_s)
        channel.sendall(data)
        channel.shutdown_write()
        return ending(channel, within_s)[0]

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


@dataclass
class Jump:
    """A jump host, and why there is no connection to it."""

    route: Route
    lock: threading.Lock = field(default_factory=threading.Lock)
    failed: Problem | None = None
    failed_at: float = 0.0


def ending(channel: paramiko.Channel, within_s: float) -> tuple[int | None, str]:
    """How a command ended, and the last it said to stderr."""
    ended = channel.status_event.wait(within_s)
    said = b""
    while channel.recv_stderr_ready():
        said += channel.recv_stderr(1 << 16)
    status = channel.exit_status if ended else -1
    return None if status < 0 else status, said[-2000:].decode("utf-8", "replace").strip()


class Attempt(paramiko.MissingHostKeyPolicy):
    """One attempt to open a connection: its time, the host keys that it accepts, and why it failed.

    fabric, which opens the connection, calls `transport` and `missing_host_key`: the latter for every key,
    since it is told of none.
    """

    def __init__(self, place: Place, known: Sequence[paramiko.PKey], within_s: int) -> None:
        self._place = place
        self._known = known
        self._within_s = within_s
        self._deadline = time.monotonic() + within_s
        self._transport: paramiko.Transport | None = None

    def transport(self, connected: Any, **options: Any) -> paramiko.Transport:
        """The transport over a socket that is connected, or over what paramiko takes for one."""
        if isinstance(connected, socket.socket):
            # paramiko leaves Nagle's algorithm on: 40 ms for each exec
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # without, it would wait a quarter of an hour to send to a host that is gone
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(UNHEARD_S * 1000))
        kind = ProgramSocket if isinstance(connected, paramiko.ProxyCommand) else CountedSocket
        counted: Any = kind(connected)
        self._transport = transport = paramiko.Transport(counted, **options)
        choose_algorithms(transport.get_security_options(), {k.get_name() for k in self._known})
        transport.banner_timeout = transport.handshake_timeout = self._left_s()
        return transport

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        """Refuse a key that is not known to be the host's; what follows is the login."""
        if not self._known:
            raise LauncherError(faults.key_unknown(self._place, key.get_name(), key.fingerprint))
        if key not in self._known:
            expected = [f"{k.get_name()} {k.fingerprint}" for k in self._known]
            raise LauncherError(faults.key_changed(self._place, key.get_name(), key.fingerprint, expected))
        if self._transport:
            self._transport.auth_timeout = self._left_s()

    def failed(self, problem: Exception) -> LauncherError | ThrottledError:
        """What fabric or paramiko raised, for people."""
        place = self._place
        if isinstance(problem, AuthFailure):
            return LauncherError(faults.login_refused(place, [str(tried.source) for tried in problem.result]))
        if self._transport:
            return self._no_session(self._transport, problem)
        if place.through == faults.PROXY_COMMAND:
            return LauncherError(faults.no_proxy_command(place, str(problem)))
        if isinstance(problem, paramiko.ChannelException):
            return LauncherError(faults.jump_refused(place))
        if isinstance(problem, socket.gaierror | UnicodeError):  # the latter for a name such as `a..b`
            return LauncherError(faults.no_address(place))
        if isinstance(problem, TimeoutError | paramiko.SSHException):
            return LauncherError(faults.connect_late(place, self._within_s))
        at_addresses = problem.errors.values() if isinstance(problem, NoValidConnectionsError) else ()
        refused = any(isinstance(each, ConnectionRefusedError) for each in at_addresses)
        return LauncherError(faults.refused(place) if refused else faults.no_route(place))

    def _no_session(
        self, transport: paramiko.Transport, problem: Exception
    ) -> LauncherError | ThrottledError:
        place, within_s = self._place, self._within_s
        late = time.monotonic() >= self._deadline - 0.5
        if transport.remote_version:
            why = f"the key exchange took longer than {within_s} s" if late else str(problem)
            return LauncherError(faults.no_agreement(place, why))
        return (
            LauncherError(faults.frozen(place, within_s)) if late else ThrottledError(faults.hung_up(place))
        )

    def _left_s(self) -> float:
        return max(0.1, self._deadline - time.monotonic())


class Ssh:
    """Opens connections. Known hosts are read once, jump hosts connected once."""

    def __init__(self, settings: SshSettings, folder: Path) -> None:
        """Relative paths of known_hosts files start at `folder`."""
        logging.getLogger("paramiko").setLevel(logging.CRITICAL)  # it prints what we raise
        self._within_s = settings.connect_within_s
        self._folder = folder
        self._lock = threading.Lock()
        self._known: dict[Path, paramiko.HostKeys] = {}
        self._jumps: dict[Place, Jump] = {}
        self._behind_jump = threading.BoundedSemaphore(CONNECTS_BEHIND_A_JUMP_HOST)

    def connect(self, route: Route) -> Wire:
        """A connection that has logged in. LauncherError says why not; ThrottledError: try again."""
        if route.gateway:
            self._connect_jump(route.gateway, route.place)
        with self._behind_jump if route.gateway else contextlib.nullcontext():
            self._open(route)
        return Wire(route)

    def close(self) -> None:
        """Hang up on the jump hosts."""
        for jump in self._jumps.values():
            jump.route.connection.close()

    def _open(self, route: Route) -> None:
        known = [key for name in route.key_names for key in self._known_keys(route, name)]
        attempt = Attempt(route.place, known, self._within_s)
        connection = route.connection
        connection.client.set_missing_host_key_policy(attempt)
        connection.connect_kwargs["transport_factory"] = attempt.transport
        try:
            connection.open()
        except BaseException as problem:
            connection.client.close()  # fabric leaves the socket of an attempt that failed open
            if not isinstance(problem, paramiko.SSHException | OSError | EOFError | ValueError):
                raise
            if route.gateway and not connection.gateway.is_connected:  # it broke since it was connected
                lost = faults.connection_lost(route.gateway.place)
                raise LauncherError(on_the_way(lost, route.place)) from None
            raise attempt.failed(problem) from None

    def _connect_jump(self, gateway: Route, place: Place) -> None:
        """One connection to a jump host; if it cannot be had, all that wait for it are told at once."""
        with self._lock:
            jump = self._jumps.setdefault(gateway.place, Jump(gateway))
        with jump.lock:
            if gateway.connection.is_connected:
                return
            if jump.failed is None or time.monotonic() > jump.failed_at + self._within_s:
                try:
                    self.connect(gateway)
                    jump.failed = None
                    return
                except LauncherError as failed:
                    jump.failed, jump.failed_at = failed.problems[0], time.monotonic()
            problem = jump.failed
        raise LauncherError(on_the_way(problem, place))

    def _known_keys(self, route: Route, name: str) -> Iterator[paramiko.PKey]:
        for text in route.known_hosts:
            path = self._folder / Path(text).expanduser()
            with self._lock:
                if path not in self._known:
                    self._known[path] = paramiko.HostKeys(str(path) if path.is_file() else None)
                found = self._known[path].lookup(name)
            yield from (found or {}).values()


def on_the_way(problem: Problem, place: Place) -> Problem:
    """A jump host's problem, told of a host behind it."""
    return replace(problem, where=f"{problem.where}, on the way to {place.host}")


def choose_algorithms(options: paramiko.transport.SecurityOptions, known: set[str]) -> None:
    """The cheap key exchange first, and kinds of host keys that are known before those that are not."""
    options.kex = tuple(sorted(options.kex, key=lambda name: not name.startswith("curve25519")))
    kinds = known | ({"rsa-sha2-512", "rsa-sha2-256"} if "ssh-rsa" in known else set())
    options.key_types = tuple(sorted(options.key_types, key=lambda name: name not in kinds))
