"""The form of an inventory file: its keys, their types and meaning; knows nothing of what they lead to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from annotated_types import Ge

from launcher.load.choice import Choice
from launcher.load.document import Document
from launcher.load.schema import filled, json_schema
from launcher.model.inventory import FrontSettings, MonitoringSettings, Paths, PoolName, SshSettings
from launcher.model.profile import Setting, Settings

Scope: TypeAlias = Literal["all", "prefill", "decode", "router"]
CHOICES = ("stack", "hardware", "model", "layout", "platform")
"""Keys whose value is the name of a file in configs/."""


@dataclass(frozen=True, slots=True)
class HostEntry:
    """One host, or with a range in its name (`gpu[01-06]`) several."""

    address: str = ""
    """IPv4 address that engines bind and peers use; a range with as many addresses as names:
    "10.0.0.[11-16]". Absent: HostName of the ssh_config file."""
    interface: str = ""
    """Network device of that address; absent: the inventory's `interface`."""
    source: str = ""
    places: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PoolEntry:
    """The hosts of one side. Instances take them in this order."""

    hosts: tuple[str, ...] | str
    """Names, ranges (`gpu[01-04]`) or both. Hosts that no instance takes are spare."""
    instances: Annotated[int, Ge(1)] | None = None
    """Absent: as many as the hosts make."""
    minimum: Annotated[int, Ge(0)] | None = None
    """Instances that must serve; below it a run stops before the router is switched. Absent: 1."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class InventoryFile:
    """One fleet. Without `layout` and `pools` its hosts are provisioned, and nothing serves."""

    cluster: str
    """Name of the fleet: lower-case letters, digits and `-`."""
    stack: str
    """Pinned versions of all software: a file in configs/stacks/."""
    paths: Paths
    """Where things are on the hosts: the shared file system, and a local disk."""
    hosts: Mapping[str, HostEntry]
    """Host name → address and interface."""
    layout: str = ""
    """Parallelism, ports and settings: a file in configs/layouts/."""
    hardware: str = ""
    """The host type: a file in configs/hardware/."""
    model: str = ""
    """What is served: a file in configs/models/."""
    platform: str = ""
    """What makes a bare host ready, from the kernel and the driver up: a file in configs/platforms/. Absent:
    hosts come with all that is below the stack."""
    interface: str = ""
    """Network device of hosts that name none of their own."""
    ssh: SshSettings = field(default_factory=SshSettings)
    """How the hosts are reached. Unknown host keys are refused, always."""
    pools: Mapping[PoolName, PoolEntry] = field(default_factory=dict)
    """Who prefills, who decodes, who routes; a router's host may serve an engine too."""
    settings: Mapping[Scope, Settings] = field(default_factory=dict)
    """vLLM's long flags without the dashes, above those of the layout; `all` means both engine pools."""
    environment: Mapping[Scope, Settings] = field(default_factory=dict)
    """Variables of the processes, above those of the layout."""
    front: FrontSettings = field(default_factory=FrontSettings)
    """API key and TLS for users."""
    monitoring: MonitoringSettings = field(default_factory=MonitoringSettings)
    """Prometheus, alerts and exporters; absent: none."""
    secrets: Mapping[str, Setting] = field(default_factory=dict)
    """Secret name → `env:NAME`, `file:PATH` (mode 0600) or `command:WORDS`."""
    accept: Mapping[str, Setting] = field(default_factory=dict)
    """Id of a rule of `lint` → why what it finds is meant here; it is shown, and does not count."""
    places: Mapping[str, str] = field(default_factory=dict)


def inventory_schema() -> dict[str, Any]:
    """JSON Schema of inventory files, for editors."""
    return json_schema(InventoryFile, title="dsv32-launch inventory")


def read_choices(document: Document) -> dict[str, Choice]:
    """The files of configs/ that an inventory names, even one that is wrong elsewhere."""
    values = document.values if isinstance(document.values, dict) else {}
    return {
        kind: Choice(str(name), document.place((kind,)))
        for kind in CHOICES
        if isinstance(name := values.get(kind), str) and (name or kind == "stack")
    }


def read_file(document: Document) -> InventoryFile:
    """The file as its types say. InputError with all that does not fit them."""
    return filled(InventoryFile, document)
