"""Ssh, Wire: connections to hosts and a command at their other end; the only door to paramiko."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import paramiko

from launcher.model.inventory import SshSettings
from launcher.model.problem import LauncherError, Problem
from launcher.remote import faults
from launcher.remote.faults import Place
from launcher.remote.route import Route

USUAL_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
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


class Wire:
    """A connection and the one command on it that we talk to: a `Stream`."""

    def __init__(self, transport: paramiko.Transport, counted: CountedSocket) -> None:
        self.transport = transport
        self.counted = counted
        self._channel: paramiko.Channel | None = None

    def start(self, command: str, *, within_s: float) -> None:
        """Run the command that `send` and `receive` talk to; OSError if it cannot be."""
        self._channel = self._run(command, within_s)

    def _run(self, command: str, within_s: float) -> paramiko.Channel:
        try:
            channel = self.transport.open_session(timeout=within_s)
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

    def alive(self) -> bool:
        """The connection itself still stands."""
        return self.transport.is_active()

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
        self.transport.close()


@dataclass
class Jump:
    """A jump host: its connection, or why there is none."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    wire: Wire | None = None
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


class Ssh:
    """Opens connections. Keys, known hosts and ssh_config are read once, jump hosts connected once."""

    def __init__(self, settings: SshSettings, folder: Path) -> None:
        """Relative paths of `settings` start at `folder`."""
        logging.getLogger("paramiko").setLevel(logging.CRITICAL)  # it prints what we raise
        self._settings = settings
        self._folder = folder
        self._lock = threading.Lock()
        self._known: dict[str, paramiko.HostKeys] = {}
        self._keys: dict[str, paramiko.PKey | str] = {}
        self._jumps: dict[Place, Jump] = {}
        self._behind_jump = threading.BoundedSemaphore(CONNECTS_BEHIND_A_JUMP_HOST)

    def connect(self, route: Route) -> Wire:
        """A connection that has logged in. LauncherError says why not; ThrottledError: try again."""
        jump = self._jump(route.gateway, route.place) if route.gateway else None
        deadline = time.monotonic() + self._settings.connect_within_s
        with self._behind_jump if jump else contextlib.nullcontext():
            counted = CountedSocket(self._socket(route, jump, deadline))
            transport = paramiko.Transport(counted)  # type: ignore[arg-type]  # it is like a socket
            try:
                self._handshake(transport, route, deadline)
                self._login(transport, route, deadline)
            except BaseException:
                transport.close()
                raise
        return Wire(transport, counted)

    def close(self) -> None:
        """Hang up on the jump hosts."""
        for jump in self._jumps.values():
            if jump.wire:
                jump.wire.close()

    def _path(self, text: str) -> Path:
        return self._folder / Path(text).expanduser()

    def _socket(self, route: Route, jump: Wire | None, deadline: float) -> Any:
        place = route.place
        if jump:
            return self._through(jump, place, deadline)
        if route.proxy_command:
            return paramiko.ProxyCommand(route.proxy_command)
        try:
            found = socket.create_connection(
                (place.address, place.port), max(0.1, deadline - time.monotonic())
            )
        except socket.gaierror:
            raise LauncherError(faults.no_address(place)) from None
        except ConnectionRefusedError:
            raise LauncherError(faults.refused(place)) from None
        except TimeoutError:
            raise LauncherError(faults.connect_late(place, self._settings.connect_within_s)) from None
        except OSError:
            raise LauncherError(faults.no_route(place)) from None
        # paramiko leaves Nagle's algorithm on: 40 ms for each exec
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(
            socket, "TCP_USER_TIMEOUT"
        ):  # it would wait a quarter of an hour to send to a host that is gone
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(UNHEARD_S * 1000))
        return found

    def _jump(self, gateway: Route, place: Place) -> Wire:
        """The one connection to a jump host; if it cannot be had, all that wait for it are told at once."""
        with self._lock:
            jump = self._jumps.setdefault(gateway.place, Jump())
        with jump.lock:
            if jump.wire and jump.wire.alive():
                return jump.wire
            if jump.failed is None or time.monotonic() > jump.failed_at + self._settings.connect_within_s:
                try:
                    jump.wire, jump.failed = self.connect(gateway), None
                    return jump.wire
                except LauncherError as failed:
                    jump.failed, jump.failed_at = failed.problems[0], time.monotonic()
            problem = jump.failed
        raise LauncherError(replace(problem, where=f"{problem.where}, on the way to {place.host}"))

    def _through(self, jump: Wire, place: Place, deadline: float) -> paramiko.Channel:
        within_s = max(0.1, deadline - time.monotonic())
        target = (place.address, place.port)
        try:
            return jump.transport.open_channel("direct-tcpip", target, ("127.0.0.1", 0), timeout=within_s)
        except paramiko.ChannelException:
            raise LauncherError(faults.jump_refused(place)) from None
        except (paramiko.SSHException, OSError):
            raise LauncherError(faults.connect_late(place, self._settings.connect_within_s)) from None

    def _handshake(self, transport: paramiko.Transport, route: Route, deadline: float) -> None:
        place, within_s = route.place, self._settings.connect_within_s
        known = [k for name in route.key_names for k in self._known_keys(route, name)]
        choose_algorithms(transport.get_security_options(), {k.get_name() for k in known})
        transport.banner_timeout = transport.handshake_timeout = max(0.1, deadline - time.monotonic())
        try:
            transport.start_client(timeout=max(0.1, deadline - time.monotonic()))
        except (paramiko.SSHException, EOFError, OSError) as problem:
            if transport.remote_version:
                raise LauncherError(faults.no_agreement(place, str(problem))) from None
            if time.monotonic() >= deadline - 0.5:
                raise LauncherError(faults.frozen(place, within_s)) from None
            raise ThrottledError(faults.hung_up(place)) from None
        if not transport.initial_kex_done:
            late = faults.no_agreement(place, f"the key exchange took longer than {within_s} s")
            raise LauncherError(late if transport.remote_version else faults.frozen(place, within_s))
        key = transport.get_remote_server_key()
        if known and key not in known:
            expected = [f"{k.get_name()} {k.fingerprint}" for k in known]
            raise LauncherError(faults.key_changed(place, key.get_name(), key.fingerprint, expected))
        if not known:
            raise LauncherError(faults.key_unknown(place, key.get_name(), key.fingerprint))

    def _known_keys(self, route: Route, name: str) -> Iterator[paramiko.PKey]:
        for text in route.known_hosts:
            path = str(self._path(text))
            with self._lock:
                if path not in self._known:
                    self._known[path] = paramiko.HostKeys(path if Path(path).is_file() else None)
                found = self._known[path].lookup(name)
            yield from (found or {}).values()

    def _login(self, transport: paramiko.Transport, route: Route, deadline: float) -> None:
        place, tried = route.place, []
        for label, key in self._candidates(route):
            if isinstance(key, str):
                tried.append(f"{label} ({key})")
                continue
            tried.append(label)
            transport.auth_timeout = max(0.1, deadline - time.monotonic())
            try:
                transport.auth_publickey(place.user, key)
            except paramiko.AuthenticationException:
                continue
            except (paramiko.SSHException, EOFError, OSError):
                break  # it has heard enough keys
            if transport.is_authenticated():
                return
        raise LauncherError(faults.login_refused(place, tried))

    def _candidates(self, route: Route) -> Iterator[tuple[str, paramiko.PKey | str]]:
        """Keys to try, or what is wrong with one: named files, then the agent's, then the usual files."""
        for path in route.identities:
            yield path, self._key(str(self._path(path)))
        if not route.only_identities:
            for key in paramiko.Agent().get_keys():
                yield f"the ssh agent's {key.comment or key.fingerprint}", key
            for path in () if route.identities else USUAL_KEYS:
                if self._path(path).is_file():
                    yield path, self._key(str(self._path(path)))

    def _key(self, path: str) -> paramiko.PKey | str:
        with self._lock:
            if path not in self._keys:
                self._keys[path] = read_key(path)
            return self._keys[path]


def choose_algorithms(options: paramiko.transport.SecurityOptions, known: set[str]) -> None:
    """The cheap key exchange first, and kinds of host keys that are known before those that are not."""
    options.kex = tuple(sorted(options.kex, key=lambda name: not name.startswith("curve25519")))
    kinds = known | ({"rsa-sha2-512", "rsa-sha2-256"} if "ssh-rsa" in known else set())
    options.key_types = tuple(sorted(options.key_types, key=lambda name: name not in kinds))


def read_key(path: str) -> paramiko.PKey | str:
    """A private key, or why it cannot be used."""
    try:
        return paramiko.PKey.from_path(path)
    except FileNotFoundError:
        return "no such file"
    except paramiko.PasswordRequiredException:
        return "has a passphrase: `ssh-add` it"
    except (TypeError, ValueError, OSError, paramiko.SSHException) as problem:
        return f"not usable: {problem}"
