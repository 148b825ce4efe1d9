"""Route: how a host is reached, inventory and ssh_config taken together; the only door to fabric."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import fabric
from paramiko.ssh_exception import SSHException

from launcher.model.inventory import Host, SshSettings
from launcher.model.problem import InputError, Problem
from launcher.remote.faults import PROXY_COMMAND, Place
from launcher.remote.login import Keys, Login

USUAL_KNOWN_HOSTS = {
    "userknownhostsfile": "~/.ssh/known_hosts",
    "globalknownhostsfile": "/etc/ssh/ssh_known_hosts",
}


@dataclass(frozen=True)
class Route:
    """How one host is reached: a connection that may not be open yet, and whose key is to be expected."""

    place: Place
    connection: fabric.Connection
    key_names: tuple[str, ...]
    """Names under which known_hosts may know it."""
    known_hosts: tuple[str, ...]
    gateway: Route | None
    """The last jump host, whose connection is the gateway of this one."""


class Routes:
    """Knows the way to every host. ssh_config is read once; hosts behind one jump host share its route."""

    def __init__(self, settings: SshSettings, folder: Path) -> None:
        """Relative paths of `settings` start at `folder`."""
        self._settings = settings
        path = folder / Path(settings.config).expanduser() if settings.config else None
        if path and not path.is_file():
            do = "correct `ssh.config` in the inventory"
            raise InputError(Problem(f"there is no ssh_config `{path}`", do=do))
        self._path = str(path or "~/.ssh/config")
        login = {"strategy_class": partial(Login, Keys(folder))}
        named = [settings.identity] if settings.identity else []
        hosts = {"user": "root", "port": settings.port, "authentication": {**login, "identities": named}}
        # lazy: settings for fabric itself, in its own files, are none of ours
        self._hosts = fabric.Config(overrides=hosts, runtime_ssh_path=str(path) if path else None, lazy=True)
        try:
            self._hosts.load_ssh_config()
        except SSHException as problem:
            raise InputError(self._wrong("ssh_config cannot be read", problem)) from None
        self._jump_hosts = fabric.Config(
            overrides={"authentication": login}, ssh_config=self._hosts.base_ssh_config, lazy=True
        )
        self._jumps: dict[Place, Route] = {}
        self._lock = threading.Lock()

    def to(self, host: Host) -> Route:
        """The way to a host of the inventory."""
        with self._lock:  # fabric's configuration is shared, and so are jump hosts
            found = self._connection(host.name, self._hosts, self._settings.user)
            if found.host == host.name:
                found.host = host.address
            jumps = self._settings.jump or found.ssh_config.get("proxyjump", "none")
            return self._route(found, self._jump(jumps, (host.name,)))

    def _jump(self, hops: str, seen: tuple[str, ...]) -> Route | None:
        """The last of these jump hosts, each behind the one before; not through one of `seen` again."""
        gateway = None
        for hop in hops.split(",") if hops != "none" else ():
            found = self._connection(hop, self._jump_hosts)
            name = found.original_host
            if name in seen:  # a `Host *` pattern holds for the jump host too
                return None
            # as ssh does: only the first is reached as its own section says
            own = None if gateway else self._jump(found.ssh_config.get("proxyjump", "none"), (*seen, name))
            route = self._route(found, gateway or own)
            gateway = self._jumps.setdefault(route.place, route)
        return gateway

    def _connection(self, name: str, config: fabric.Config, user: str = "") -> fabric.Connection:
        # gateway=False: `_route` sets it, since fabric takes several jump hosts in the opposite order to ssh,
        # and connects to a jump host anew for each host behind it. A dict of the connection's own: fabric
        # would collect all hosts' key files in the configuration that they share.
        within_s = self._settings.connect_within_s
        try:
            return fabric.Connection(
                name,
                user=user or None,
                config=config,
                gateway=False,
                forward_agent=False,
                connect_timeout=within_s,
                connect_kwargs={"channel_timeout": within_s},
            )
        except (ValueError, SSHException) as problem:  # such as a port that is no number
            raise InputError(self._wrong(f"`{name}` cannot be looked up in ssh_config", problem)) from None

    def _wrong(self, what: str, problem: Exception) -> Problem:
        do = f"correct it until `ssh -G -F {self._path} HOST` shows what you mean"
        return Problem(what, self._path, str(problem), do)

    def _route(self, connection: fabric.Connection, gateway: Route | None) -> Route:
        wants, settings = connection.ssh_config, self._settings
        connection.gateway = gateway.connection if gateway else wants.get("proxycommand")
        known_hosts = [settings.known_hosts] if settings.known_hosts else []
        for option, usual in USUAL_KNOWN_HOSTS.items():
            known_hosts += wants.get(option, usual).split()
        name = connection.original_host
        names = key_names(wants.get("hostkeyalias", ""), (connection.host, name), connection.port)
        through = gateway.place.host if gateway else PROXY_COMMAND if connection.gateway else ""
        place = Place(
            host=name,
            user=connection.user,
            address=connection.host,
            port=connection.port,
            through=through,
            known_hosts=known_hosts[0],
            key_name=names[0],
        )
        return Route(place, connection, names, tuple(known_hosts), gateway)


def key_names(alias: str, names: tuple[str, ...], port: int) -> tuple[str, ...]:
    """Names under which known_hosts may have a host: HostKeyAlias alone, or its address and its name."""
    if alias:
        return (alias,)
    return tuple(dict.fromkeys(names if port == 22 else (f"[{n}]:{port}" for n in names)))
