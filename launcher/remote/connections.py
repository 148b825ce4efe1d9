"""Connections: a session for each host, opened when first needed or ahead of that; knows no requests."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import TracebackType

from launcher.model.problem import LauncherError
from launcher.model.wish import Wish
from launcher.remote import faults
from launcher.remote.link import BEAT_S
from launcher.remote.route import Routes
from launcher.remote.session import Session
from launcher.remote.ssh import Ssh, ThrottledError, Wire
from launcher.wait import try_again

CONNECTS_AT_ONCE = 32
"""The key exchange is the controller's own work; more at once make each slower."""
CONNECT_ATTEMPTS = 5


class Connections:
    """One connection for each host of a wish. Agents hear heartbeats while this is entered."""

    def __init__(self, wish: Wish) -> None:
        """Reads ssh_config and connects nowhere; InputError if there is no such file."""
        inventory = wish.inventory
        self._hosts = inventory.hosts
        self._password = wish.secrets.get(inventory.ssh.sudo_password)
        folder = Path(inventory.path).resolve().parent
        self._routes = Routes(inventory.ssh, folder)
        self._ssh = Ssh(inventory.ssh, folder)
        self._sessions: dict[str, Session] = {}
        self._ahead: dict[str, Future[Session]] = {}
        self._opening = {name: threading.Lock() for name in inventory.hosts}
        self._connects = threading.BoundedSemaphore(CONNECTS_AT_ONCE)
        self._traffic: dict[str, tuple[int, int]] = {}
        self._closed = threading.Event()

    def __enter__(self) -> Connections:
        threading.Thread(target=self._beat, name="heartbeats", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open_ahead(self, hosts: Iterable[str]) -> None:
        """Begin to connect, while the caller does something else; what goes wrong is told by `session`."""
        for host in hosts:
            self._ahead[host] = Future()
            # nobody waits for these threads at the end of the program
            threading.Thread(target=self._fulfil, args=(host, self._ahead[host]), daemon=True).start()

    def session(self, host: str, *, again: bool) -> Session:
        """The host's agent, started if need be; `again`: also in place of one that was lost."""
        with self._opening[host]:
            begun = self._ahead.pop(host, None)
            session = begun.result() if begun else self._sessions.get(host)
            if session and session.usable:
                return session
            if self._closed.is_set() or not again:
                raise LauncherError(faults.lock_lost(host))
            return self._open(host)

    def forget(self, host: str) -> None:
        """Hang up at one host; the next request opens a connection anew."""
        with self._opening[host]:
            self.traffic()
            if session := self._sessions.pop(host, None):
                session.close()

    def traffic(self) -> dict[str, tuple[int, int]]:
        """Bytes sent to and received from each host so far, SSH included."""
        for host, session in list(self._sessions.items()):
            self._traffic[host] = session.traffic
        return dict(self._traffic)

    def close(self) -> None:
        """Hang up everywhere; agents end between two ops and let go of their locks."""
        self._closed.set()
        self.traffic()
        for session in list(self._sessions.values()):
            session.close()
        self._ssh.close()

    def _fulfil(self, host: str, promise: Future[Session]) -> None:
        try:
            promise.set_result(self._open(host))
        except BaseException as problem:  # it belongs to whoever asks for the session
            promise.set_exception(problem)

    def _open(self, host: str) -> Session:
        route = self._routes.to(self._hosts[host])
        with self._connects:
            wire = self._connect(partial(self._ssh.connect, route))
        session = self._sessions[host] = Session(route.place, wire, password=self._password)
        if self._closed.is_set():  # meanwhile
            session.close()
        return session

    def _connect(self, connect: partial[Wire]) -> Wire:
        try:
            return try_again(connect, on=ThrottledError, attempts=CONNECT_ATTEMPTS)
        except ThrottledError as throttled:
            raise LauncherError(throttled.problem) from None

    def _beat(self) -> None:
        while not self._closed.wait(BEAT_S):
            for session in list(self._sessions.values()):
                session.beat()
