"""Route: how a host is reached, inventory and ssh_config taken together; the only door to fabric."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from pathlib import Path

import fabric

from launcher.model.inventory import Host, SshSettings
from launcher.model.problem import InputError, Problem
from launcher.remote.faults import Place

USUAL_KNOWN_HOSTS = {
    "userknownhostsfile": "~/.ssh/known_hosts",
    "globalknownhostsfile": "/etc/ssh/ssh_known_hosts",
}


@dataclass(frozen=True)
class Route:
    """How one host is reached, ssh_config and inventory taken together."""

    place: Place
    key_names: tuple[str, ...]
    """Names under which known_hosts may know it."""
    known_hosts: tuple[str, ...]
    identities: tuple[str, ...]
    only_identities: bool
    gateway: Route | None
    proxy_command: str


class Routes:
    """Knows the way to every host. ssh_config is read once."""

    def __init__(self, settings: SshSettings, folder: Path) -> None:
        """Relative paths of `settings` start at `folder`."""
        self._settings = settings
        path = folder / Path(settings.config).expanduser() if settings.config else None
        if path and not path.is_file():
            do = "correct `ssh.config` in the inventory"
            raise InputError(Problem(f"there is no ssh_config `{path}`", do=do))
        # lazy: settings for fabric itself, in its own files, are none of ours
        self._config = fabric.Config(runtime_ssh_path=str(path) if path else None, lazy=True)
        self._config.load_ssh_config()
        self._lock = threading.Lock()

    def to(self, host: Host) -> Route:
        """The way to a host of the inventory."""
        found = self._connection(host.name)
        wants, settings = found.ssh_config, self._settings
        place = Place(
            host=host.name,
            user=settings.user or wants.get("user", "root"),
            address=host.address if found.host == host.name else found.host,
            port=int(wants.get("port", settings.port)),
        )
        jumps = settings.jump or wants.get("proxyjump", "none")
        named = (settings.identity,) if settings.identity else ()
        return self._route(found, place, self._jump(jumps, (host.name,)), named)

    def _jump(self, hops: str, seen: tuple[str, ...]) -> Route | None:
        """The last of these jump hosts, each behind the one before; not through one of `seen` again."""
        gateway = None
        for hop in hops.split(",") if hops != "none" else ():
            found = self._connection(hop)
            name = found.original_host
            if name in seen:  # a `Host *` pattern holds for the jump host too
                return None
            # as ssh does: only the first is reached as its own section says
            own = None if gateway else self._jump(found.ssh_config.get("proxyjump", "none"), (*seen, name))
            gateway = self._route(found, Place(name, found.user, found.host, found.port), gateway or own, ())
        return gateway

    def _connection(self, name: str) -> fabric.Connection:
        # a dict of our own, or fabric would collect every host's key files in its configuration; no gateway,
        # since fabric goes through several jump hosts in the opposite order to ssh's
        own: dict[str, list[str]] = {"key_filename": []}
        with self._lock:  # its configuration is no thread's own
            return fabric.Connection(name, config=self._config, gateway=False, connect_kwargs=own)

    def _route(
        self, found: fabric.Connection, place: Place, gateway: Route | None, identities: tuple[str, ...]
    ) -> Route:
        wants = found.ssh_config
        proxy = "" if gateway else wants.get("proxycommand", "")
        known_hosts = [self._settings.known_hosts] if self._settings.known_hosts else []
        for option, usual in USUAL_KNOWN_HOSTS.items():
            known_hosts += wants.get(option, usual).split()
        names = key_names(wants.get("hostkeyalias", ""), (place.address, place.host), place.port)
        through = gateway.place.host if gateway else "ProxyCommand" if proxy else ""
        return Route(
            place=replace(place, through=through, known_hosts=known_hosts[0], key_name=names[0]),
            key_names=names,
            known_hosts=tuple(known_hosts),
            identities=(*identities, *found.connect_kwargs["key_filename"]),
            only_identities=wants.get("identitiesonly") == "yes",
            gateway=gateway,
            proxy_command=proxy,
        )


def key_names(alias: str, names: tuple[str, ...], port: int) -> tuple[str, ...]:
    """Names under which known_hosts may have a host: HostKeyAlias alone, or its address and its name."""
    if alias:
        return (alias,)
    return tuple(dict.fromkeys(names if port == 22 else (f"[{n}]:{port}" for n in names)))
