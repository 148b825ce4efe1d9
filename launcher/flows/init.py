"""init: a commented inventory to begin with; from host names, or from an Ansible YAML inventory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from launcher.load import Data
from launcher.load.choice import Choice, read
from launcher.load.data import roots_of
from launcher.load.ranges import expand
from launcher.load.rules import cluster_problems
from launcher.load.wording import count
from launcher.model.inventory import PoolName
from launcher.model.problem import InputError, Problem
from launcher.model.profile import Layout

POOLS: tuple[PoolName, ...] = ("prefill", "decode", "router")


@dataclass(frozen=True, slots=True)
class Start:
    """What is known of a fleet before it has an inventory."""

    cluster: str
    hosts: Mapping[str, str]
    """Host name → address; empty where ssh_config has it."""
    pools: Mapping[PoolName, tuple[str, ...]] = field(default_factory=dict)
    """Empty: `init_text` shares the hosts out."""
    user: str = "root"
    port: str = "22"
    identity: str = ""
    notes: tuple[str, ...] = ()
    """What could not be taken over; written at the top as comments."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the hosts are to become: names of files in configs/, and two facts of the hosts."""

    layout: str
    stack: str
    hardware: str
    model: str
    interface: str = "eth0"
    shared: str = "/gpfs/dsv32"
    local: str = "/nvme/dsv32"


def init_text(start: Start, shape: Shape, *, data_dir: Path | None = None) -> str:
    """An inventory that says what each line is for. InputError if the hosts are too few for the layout,
    or the cluster cannot be called so."""
    if problems := tuple(cluster_problems(start.cluster, "CLUSTER")):
        raise InputError(*problems)
    layout = read(Layout, Choice(shape.layout, "--layout"), Data(roots_of(data_dir)))
    pools = dict(start.pools or share(tuple(start.hosts), layout))
    if layout.router is not None:
        pools.setdefault("router", tuple(start.hosts)[:1])
    tail = _tail(several_route=len(pools.get("router", ())) > 1)
    return "\n".join((*_head(start, shape), *_hosts(start), *_pools(pools), *tail))


def named_hosts(names: str, addresses: str) -> Mapping[str, str]:
    """Host name → address, from two ranges: `gpu[01-06]` and `10.0.0.[11-16]`, or no addresses at all."""
    try:
        hosts = expand(names)
        each = expand(addresses) if addresses else ("",) * len(hosts)
    except ValueError as error:
        raise InputError(Problem(str(error), do="write ranges like gpu[01-06]")) from None
    if len(each) != len(hosts):
        what = f"`{names}` is {count(len(hosts), 'host')}, `{addresses}` is {count(len(each), 'address')}"
        raise InputError(Problem(what, where="--addresses", do="make the two ranges equally long"))
    return dict(zip(hosts, each, strict=True))


def share(hosts: tuple[str, ...], layout: Layout) -> Mapping[PoolName, tuple[str, ...]]:
    """Hosts by engine pool, in whole instances: a third decodes, the rest prefills; or all of them do one."""
    widths = {pool: part.hosts_per_instance for pool, part in layout.engines.items()}
    needed = sum(widths.values())
    if len(hosts) < needed:
        what = f"layout {layout.name} needs {count(needed, 'host')}, found {len(hosts)}"
        do = "give more hosts, or another layout of configs/layouts/"
        raise InputError(Problem(what, where="--layout", do=do))
    if not layout.disaggregated:
        return {pool: hosts[: len(hosts) // width * width] for pool, width in widths.items()}
    prefill, decode = widths["prefill"], widths["decode"]
    decoding = max(decode, len(hosts) // 3 // decode * decode)
    prefilling = (len(hosts) - decoding) // prefill * prefill
    return {"prefill": hosts[:prefilling], "decode": hosts[prefilling : prefilling + decoding]}


def _head(start: Start, shape: Shape) -> Iterator[str]:
    yield f"# Fleet {start.cluster}. Check this file: dsv32-launch lint FILE"
    yield from (f"# Not taken over: {note}" for note in start.notes)
    yield f"cluster: {_scalar(start.cluster)}"
    yield f"stack: {shape.stack} # pinned versions of all software: configs/stacks/"
    yield f"hardware: {shape.hardware} # the host type: configs/hardware/"
    yield f"model: {shape.model} # configs/models/"
    yield f"layout: {shape.layout} # parallelism, ports, flags: configs/layouts/; without it nothing serves"
    yield "# platform: ubuntu-24.04 # for bare hosts, kernel, driver and RDMA with it: configs/platforms/"
    yield ""
    yield "# Hosts whose key is not known yet are refused: connect once by hand, or name a file of keys."
    yield "ssh:"
    yield f"  user: {_scalar(start.user)} # anyone but root needs sudo"
    if start.port != "22":
        yield f"  port: {start.port}"
    if start.identity:
        yield f"  identity: {_scalar(start.identity)}"
    yield "  # known_hosts: prod.known_hosts # beside this file"
    yield "  # config: ssh_config # HostName, User, Port, ProxyJump of hosts; ~/.ssh/config is read otherwise"
    yield ""
    yield "paths:"
    yield f"  shared: {shape.shared} # the shared file system, as hosts see it: software and weights"
    yield f"  local: {shape.local} # a fast local disk: environments, staged weights, caches"
    yield ""
    yield "# The network device that processes meet on (see `ip -brief address`); a host may name its own."
    yield f"interface: {_scalar(shape.interface)}"


def _hosts(start: Start) -> Iterator[str]:
    yield ""
    yield '# One line a host, or a range: gpu[01-06]: {address: "10.0.0.[11-16]"}'
    yield "hosts:"
    for name, address in start.hosts.items():
        yield f"  {_scalar(name)}: {{address: {_scalar(address)}}}" if address else f"  {_scalar(name)}: {{}}"


def _pools(pools: Mapping[PoolName, tuple[str, ...]]) -> Iterator[str]:
    yield ""
    yield "# Instances take hosts in this order. instances: as many as the hosts make; minimum: 1 must serve."
    yield "pools:"
    for pool in POOLS:
        if pool in pools:
            yield f"  {pool}: {{hosts: [{', '.join(map(_scalar, pools[pool]))}]}}"


def _tail(*, several_route: bool) -> Iterator[str]:
    yield ""
    yield "# Flags of vLLM above those of the layout, without the dashes; for all engines or for one pool."
    yield "# settings:"
    yield "#   decode: {max-num-seqs: 256}"
    yield "# environment:"
    yield "#   all: {UCX_LOG_LEVEL: info}"
    if several_route:
        yield "# front: {address: 10.0.0.50/24} # users come to it; it moves between hosts that route"
    yield "# secrets: # where each comes from, never the value: env:NAME, file:PATH (0600) or command:WORDS"
    yield '#   api_key: "env:DSV32_API_KEY"'
    yield ""


def _scalar(text: str) -> str:
    """A YAML scalar; in quotes unless it is made of what never needs them."""
    plain = text.replace("-", "").replace("_", "").replace(".", "").replace("/", "")
    return text if plain.isascii() and plain.isalnum() and text[0].isalnum() else json.dumps(text)
