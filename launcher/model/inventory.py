"""Inventory, Host, Pool, SshSettings, Paths: what the user writes; knows nothing of YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Le

from launcher.model.profile import EnginePool, Port, Setting, SettingsByPool
from launcher.model.telemetry import ExporterName

PoolName: TypeAlias = Literal["prefill", "decode", "router"]
WeightsPlace: TypeAlias = Literal["staged", "in-place"]
ENGINE_POOLS: tuple[EnginePool, ...] = ("prefill", "decode")


@dataclass(frozen=True, slots=True)
class SshSettings:
    """How the controller reaches the hosts. Unknown host keys are refused, always."""

    user: str = ""
    """Login name; empty: what ssh_config says, else root."""
    port: Port = 22
    """sshd's port, unless ssh_config says another."""
    config: str = ""
    """An ssh_config file; relative to the inventory. Empty: ~/.ssh/config. Read are HostName, User, Port,
    IdentityFile, IdentitiesOnly, ProxyJump, ProxyCommand, HostKeyAlias, the known_hosts files; no Include."""
    known_hosts: str = ""
    """A known_hosts file read beside ssh_config's; relative to the inventory."""
    identity: str = ""
    """A private key file; empty: the agent, ssh_config's IdentityFile, the usual key files."""
    jump: str = ""
    """A host to go through, `[user@]host[:port]`; empty: ssh_config's ProxyJump."""
    sudo_password: str = ""
    """Name of the secret that holds the sudo password; empty: `sudo -n`. Not used when the user is root."""
    connect_within_s: Annotated[int, Ge(1), Le(600)] = 15
    """Seconds for TCP connect, banner, key exchange and login together."""
    answer_within_s: Annotated[int, Ge(1), Le(3600)] = 60
    """Seconds for one request of read-only probes."""


@dataclass(frozen=True, slots=True)
class Host:
    """A machine of the inventory."""

    name: str
    address: str
    """The address engines bind and peers use; ssh goes to ssh_config's HostName of this name, else here."""
    interface: str
    """Network device of `address`: GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME and NVSHMEM's bootstrap use it."""
    source: str
    """`file:line` of the host in the inventory."""
    places: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The lines of its address and its interface, where they are written."""


@dataclass(frozen=True, slots=True)
class Pool:
    """The hosts of one side. Instances take hosts in this order, `hosts_per_instance` of the layout each."""

    name: PoolName
    hosts: tuple[str, ...]
    instances: int
    minimum: int
    """Instances that must serve; below it a run stops before the router is switched."""
    source: str


@dataclass(frozen=True, slots=True)
class Paths:
    """Where things are on the hosts."""

    shared: str
    """The shared file system (GPFS) as the hosts see it: stacks and model weights come from here."""
    local: str
    """A local disk of the host (NVMe): environments, staged weights and caches go here."""
    weights: WeightsPlace = "staged"
    """staged: hosts copy them to `local`, where engines read them; in-place: engines read them on `shared`,
    and `up` reads them into the page cache before. `plan` says how long each takes."""


@dataclass(frozen=True, slots=True)
class FrontSettings:
    """What users meet at the front."""

    api_key: str = ""
    """Name of the secret that users must send, as `Authorization: Bearer KEY`; empty: none is asked for."""
    certificate: str = ""
    """Name of the secret with certificate chain and private key in PEM, in this order; empty: no TLS."""
    address: str = ""
    """With its prefix, `10.0.0.50/24`: one of the hosts that route has it, and another one takes it over
    (keepalived). Empty: users come to each of these hosts at its own."""

    @property
    def closed(self) -> bool:
        """Users need what the launcher's own questions do without: these go to the host's loopback."""
        return bool(self.api_key or self.certificate)


@dataclass(frozen=True, slots=True)
class MonitoringSettings:
    """Who collects what hosts and engines tell of themselves, and what is an alert."""

    host: str = ""
    """The host with Prometheus and Alertmanager; all hosts then have exporters. Empty: none has any of it."""
    sla: str = "article"
    """The service level that TTFT and TPOT are held against: a file in configs/slas/."""
    tell: str = ""
    """URL that Alertmanager sends alerts to (its webhook); empty: they are seen at Alertmanager alone."""
    every_s: Annotated[int, Ge(1), Le(120)] = 15
    """Seconds between two looks at each target. Above 120, Prometheus takes a value for lost in between."""
    keep_days: Annotated[int, Ge(1)] = 15
    limits: Mapping[str, float] = field(default_factory=dict)
    """Limit of configs/alerts.yaml → another value."""
    for_s: Mapping[str, Annotated[int, Ge(0)]] = field(default_factory=dict)
    """Alert → how long it must hold before it fires, instead of what configs/alerts.yaml says."""
    host_port: Port = 9100
    """The node exporter's, on each host."""
    gpu_port: Port = 9400
    """The DCGM exporter's, on each host with GPUs."""
    prometheus_port: Port = 9090
    alertmanager_port: Port = 9093
    places: Mapping[str, str] = field(default_factory=dict, compare=False)
    source: str = ""

    @property
    def exporter_ports(self) -> Mapping[ExporterName, Port]:
        """Where each exporter listens, with us or without: the hosts may have had them before."""
        return {"gpu": self.gpu_port, "host": self.host_port}


@dataclass(frozen=True, slots=True)
class Inventory:
    """One fleet, as its user describes it."""

    cluster: str
    stack: str
    hosts: Mapping[str, Host]
    ssh: SshSettings
    paths: Paths
    layout: str = ""
    """Empty: hosts are provisioned, nothing serves."""
    hardware: str = ""
    model: str = ""
    platform: str = ""
    """Empty: what is below the stack is somebody else's."""
    pools: Mapping[PoolName, Pool] = field(default_factory=dict)
    settings: SettingsByPool = field(default_factory=dict)
    environment: SettingsByPool = field(default_factory=dict)
    front: FrontSettings = field(default_factory=FrontSettings)
    monitoring: MonitoringSettings = field(default_factory=MonitoringSettings)
    secrets: Mapping[str, Setting] = field(default_factory=dict)
    """Secret name → where its value comes from: `env:NAME`, `file:PATH` or `command:WORDS`."""
    accept: Mapping[str, Setting] = field(default_factory=dict)
    """Rule id → why its findings are meant to be."""
    path: str = ""
    """The file it was read from."""
