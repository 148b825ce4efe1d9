"""Deployment, Instance, Process, Rank, Endpoint, routers and fronts: what serves where; knows no step."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias

from launcher.model.inventory import FrontSettings, Paths
from launcher.model.profile import EnginePool, Setting, Style

Slot: TypeAlias = Literal["a", "b"]
SLOTS: tuple[Slot, ...] = ("a", "b")
EndpointName: TypeAlias = Literal[
    "api", "rpc", "kv", "supervisor", "guard", "router", "router-metrics", "front", "front-metrics", "weights"
]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listening address, or `count` of them on consecutive ports."""

    name: EndpointName
    host: str
    address: str
    port: int
    count: int = 1
    source: str = ""
    """The file line that set the port, or the first one that it is counted from."""

    def urls(self) -> tuple[str, ...]:
        """`http://address:port` of each port."""
        return tuple(f"http://{self.address}:{self.port + i}" for i in range(self.count))


@dataclass(frozen=True, slots=True)
class Rank:
    """One data-parallel rank and its devices on its host."""

    index: int
    """Global data-parallel rank within the instance."""
    gpus: tuple[int, ...]
    """Local device numbers, one per tensor-parallel rank; empty where the hardware has none."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One flag of a command line and the file line that set it."""

    flag: str
    """`--max-num-seqs`; empty for a positional word."""
    value: str | None
    """None: the flag stands alone."""
    source: str
    inside: Mapping[str, str] = field(default_factory=dict, compare=False)
    """As in `Setting`: the lines of the keys of JSON."""

    def words(self) -> tuple[str, ...]:
        """The words it becomes in argv."""
        return tuple(w for w in (self.flag, self.value) if w is not None and w != "")


@dataclass(frozen=True, slots=True)
class Process:
    """One systemd unit of an instance on one host; what you restart."""

    instance: str
    index: int
    host: str
    unit: str
    """`dsv32-decode-0.service`, the same name on each host of the instance."""
    ranks: tuple[Rank, ...]
    leads: bool
    """Holds rank 0: the others connect to it."""
    endpoints: tuple[Endpoint, ...]
    command: tuple[str, ...]
    """Words before the arguments: the program and its subcommand, absolute."""
    arguments: tuple[Argument, ...]
    environment: Mapping[str, Setting]
    """Variable → text and source; values are str."""

    @property
    def guard_unit(self) -> str:
        """The unit that starts and stops this one."""
        return f"dsv32-guard-{self.instance}.service"

    @property
    def urls(self) -> tuple[str, ...]:
        """Where it answers requests."""
        return tuple(url for e in self.endpoints if e.name == "api" for url in e.urls())

    @property
    def ports(self) -> tuple[int, ...]:
        """What it listens on itself."""
        return tuple(e.port + i for e in self.endpoints if e.name != "guard" for i in range(e.count))

    def endpoint(self, name: EndpointName) -> Endpoint:
        """The one endpoint of that name."""
        return next(e for e in self.endpoints if e.name == name)

    def argv(self) -> tuple[str, ...]:
        """The whole command line."""
        return self.command + tuple(w for a in self.arguments for w in a.words())


@dataclass(frozen=True, slots=True)
class Instance:
    """One vLLM engine, spanning 1..n hosts; the unit of life: it starts, stops and fails as a whole."""

    name: str
    """`<pool>-<index>`."""
    pool: EnginePool
    style: Style
    processes: tuple[Process, ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        """Its hosts, leader first."""
        return tuple(p.host for p in self.processes)

    @property
    def api(self) -> tuple[Endpoint, ...]:
        """The endpoints that answer requests."""
        return tuple(e for p in self.processes for e in p.endpoints if e.name == "api")


@dataclass(frozen=True, slots=True)
class RouterProcess:
    """One of the two routers of a host. Requests go to one of them; the other one stands by, and takes over
    where the first is to change or has died."""

    host: str
    slot: Slot
    unit: str
    """`dsv32-router-a.service`."""
    endpoints: tuple[Endpoint, ...]
    workers: tuple[str, ...]
    """Instances that it sends requests to."""
    command: tuple[str, ...]
    arguments: tuple[Argument, ...]
    environment: Mapping[str, Setting]
    ready_path: str
    finish_within_s: int
    """Seconds that running requests get when it is replaced."""

    def argv(self) -> tuple[str, ...]:
        """The whole command line."""
        return self.command + tuple(w for a in self.arguments for w in a.words())

    def endpoint(self, name: EndpointName) -> Endpoint:
        """The one endpoint of that name."""
        return next(e for e in self.endpoints if e.name == name)


@dataclass(frozen=True, slots=True)
class Front:
    """HAProxy on one host, at the address that users get, before the two routers of that host."""

    host: str
    unit: str
    endpoint: Endpoint
    metrics: Endpoint
    settings: FrontSettings
    others: tuple[str, ...] = ()
    """Addresses of the other hosts that have one."""
    place: int = 0
    """Among the hosts that route: the first takes the shared address where none has it yet."""

    @property
    def shared(self) -> str:
        """The address that moves between the hosts that route, without its prefix; empty: there is none."""
        return self.settings.address.partition("/")[0]

    @property
    def group(self) -> int:
        """VRRP's name for the shared address, 1 to 255: by its last number, so that two fleets of one network
        have two."""
        return int(self.shared.rpartition(".")[2]) % 255 + 1

    @property
    def url(self) -> str:
        """Where users come in."""
        scheme = "https" if self.settings.certificate else "http"
        return f"{scheme}://{self.shared or self.endpoint.address}:{self.endpoint.port}"

    @property
    def own_url(self) -> str:
        """Where it is asked from its own host, without key and TLS."""
        address = "127.0.0.1" if self.settings.closed else self.endpoint.address
        return f"http://{address}:{self.endpoint.port}"


DrainedBy: TypeAlias = Literal["operator", "rollout", "restart"]


@dataclass(frozen=True, slots=True)
class Drained:
    """An instance that routers send no requests to."""

    instance: str
    who: str
    when: str
    """UTC, ISO 8601."""
    why: str
    by: DrainedBy = "operator"
    """operator: until `undrain`. rollout: while it moves; any later rollout gives it requests again. restart:
    until it has answered after a restart; a later restart of it, or `undrain`, gives it requests again."""

    def __str__(self) -> str:
        return f"{self.instance} is drained: {self.why} ({self.who}, {self.when})"


@dataclass(frozen=True, slots=True)
class Deployment:
    """Everything that serves, fully computed."""

    cluster: str
    model_path: str
    """Folder of the weights, staged or in place; its text is the same on all hosts (NIXL compares it)."""
    served_name: str
    environment_path: str
    """Local folder of the Python environment."""
    paths: Paths
    instances: tuple[Instance, ...]
    routers: tuple[RouterProcess, ...]
    """Host by host, its two one after the other."""
    fronts: tuple[Front, ...] = ()
    drained: tuple[Drained, ...] = ()
    """Instances that operators keep away from requests."""

    @property
    def drained_text(self) -> str:
        """What is drained, as JSON for the hosts that route."""
        return json.dumps([asdict(d) for d in self.drained], indent=1) + "\n"

    @property
    def routing_hosts(self) -> frozenset[str]:
        """The hosts that route."""
        return frozenset(front.host for front in self.fronts)

    def instance(self, name: str) -> Instance:
        """The instance of that name; KeyError if there is none."""
        for i in self.instances:
            if i.name == name:
                return i
        raise KeyError(name)

    def processes_on(self, host: str) -> tuple[Process, ...]:
        """The engine processes of one host."""
        return tuple(p for i in self.instances for p in i.processes if p.host == host)
