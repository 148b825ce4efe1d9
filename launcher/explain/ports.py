"""Ports: who listens, how the number comes about, who connects, and what says it to the program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from launcher.explain.fact import Fact, together
from launcher.explain.known import Known
from launcher.explain.rules import rule_facts
from launcher.model.deployment import SLOTS, Deployment, Endpoint, EndpointName, Front, Process, RouterProcess
from launcher.model.profile import Engine, Placed
from launcher.resolve.ports import weights_endpoints

MEANS: Mapping[EndpointName, str] = {
    "api": "vLLM's HTTP API, with /health and /metrics",
    "rpc": "rank 0 waits here for the processes of the instance's other hosts",
    "kv": "NIXL's handshake: tells the other side how to read KV from here; the KV itself goes by RDMA",
    "supervisor": "vLLM's supervisor tells here whether all API servers of its host are healthy",
    "guard": "UDP: the guards of the instance's hosts tell each other here what runs",
    "router": "the router's own API, behind the front",
    "router-metrics": "the router's metrics",
    "front": "the address that users get",
    "front-metrics": "HAProxy's metrics",
    "weights": "hosts hand each other blocks of the model here, while `up` brings it; nothing listens else",
}
FIELDS: Mapping[EndpointName, str] = {
    "api": "api_port",
    "rpc": "rpc_port",
    "kv": "kv_port",
    "supervisor": "supervisor_port",
    "guard": "guard_port",
    "router": "port",
    "router-metrics": "metrics_port",
    "front": "front_port",
    "front-metrics": "front_metrics_port",
}
"""The field of the layout that sets it."""


@dataclass(frozen=True, slots=True)
class Listener:
    """A process or router, and one of its endpoints."""

    owner: Process | RouterProcess | Front
    endpoint: Endpoint

    @property
    def name(self) -> str:
        """`decode-0 on gpu05`."""
        owner = self.owner
        if isinstance(owner, Front):
            return f"front on {owner.host}"
        name = owner.instance if isinstance(owner, Process) else f"router {owner.slot}"
        return f"{name} on {self.endpoint.host}"


def listeners(deployment: Deployment) -> Iterator[Listener]:
    """Every endpoint with whose it is."""
    for process in (p for i in deployment.instances for p in i.processes):
        yield from (Listener(process, e) for e in process.endpoints)
    for router in deployment.routers:
        yield from (Listener(router, e) for e in router.endpoints)
    for front in deployment.fronts:
        yield from (Listener(front, e) for e in (front.endpoint, front.metrics))


def port_facts(port: int, known: Known) -> Iterator[Fact]:
    """All that listens on that port of any host."""
    deployment = known.wanted.deployment
    yield from weights_facts(port, known)
    found = [one for one in listeners(deployment) if _has(one.endpoint, port)] if deployment else []
    if not deployment or not found:
        return
    for one in found:
        yield port_fact(one, known, port)
    yield from together(Fact("does", o.endpoint.name, MEANS[o.endpoint.name], (), "") for o in found)
    yield from together(Fact("peer", o.endpoint.name, peers(o, deployment), (o.name,)) for o in found)
    names = {name for o in found for name in said_by(o)}
    yield from rule_facts((*names, "port_clash"), known)


def weights_facts(port: int, known: Known) -> Iterator[Fact]:
    """Where weights are staged by that port."""
    hosts = known.wanted.wish.inventory.hosts.values()
    staged = [e for h in hosts for e in weights_endpoints(h, known.wanted.steps.get(h.name, ()))]
    found = [e for e in staged if e.port == port]
    for e in found:
        yield Fact("port", e.name, f"{e.address}:{port}", (f"weights on {e.host}",), e.source)
    if found:
        yield Fact("does", "weights", MEANS["weights"])
        yield Fact("peer", "weights", f"the jobs of {', '.join(e.host for e in found)}, with the run's key")


def port_fact(one: Listener, known: Known, port: int | None = None) -> Fact:
    """Where it listens, on all its ports or on the one that is asked for, and how that comes about."""
    endpoint = one.endpoint
    shown = str(port or endpoint.port)
    if port is None and endpoint.count > 1:
        shown = f"{endpoint.port}–{endpoint.port + endpoint.count - 1}"
    about = computed(one, known, port)
    return Fact("port", endpoint.name, f"{endpoint.address}:{shown}", (one.name,), endpoint.source, about)


def computed(one: Listener, known: Known, port: int | None) -> str:
    """`kv_port 5600 + data-parallel rank 5`."""
    endpoint, profile = one.endpoint, known.wanted.wish.profile
    name = FIELDS[endpoint.name]
    layout, engine = _layout_of(one, known), profile.engine
    base = getattr(layout, name)
    written = "" if layout and name in layout.places else " (a default)"
    first = f"{name} {base}{written}"
    if isinstance(one.owner, RouterProcess) and SLOTS.index(one.owner.slot):
        return f"{first} + {SLOTS.index(one.owner.slot)}: the second router of the host"
    if not isinstance(one.owner, Process) or endpoint.name not in ("api", "kv"):
        return first
    offset = (port or endpoint.port) - base
    if endpoint.name == "api":
        each = f" + rank of the host {offset if port else f'0–{endpoint.count - 1}'}"
        return f"{first}{each if endpoint.count > 1 else ''}"
    return f"{first} + {_rank(one.owner, endpoint, offset, port, engine)}"


def peers(one: Listener, deployment: Deployment) -> str:
    """Who connects to it."""
    name, owner = one.endpoint.name, one.owner
    if name == "front":
        return "users"
    if name == "router":
        return f"the fronts on {', '.join(f.host for f in deployment.fronts)}"
    if name in ("router-metrics", "front-metrics"):
        return "whoever collects metrics"
    assert isinstance(owner, Process)
    instance = deployment.instance(owner.instance)
    if name == "api":
        routers = ", ".join(f.host for f in deployment.fronts)
        return (
            f"the routers on {routers}, and `status`, from the host itself"
            if routers
            else "users: there is no router"
        )
    if name == "guard":
        return f"guards on {', '.join(h for h in instance.hosts if h != owner.host) or 'no other host'}"
    if name == "rpc":
        return f"{instance.name} on {', '.join(h for h in instance.hosts if h != owner.host)}"
    if name == "supervisor":
        return "whoever asks for the health of the whole host"
    if instance.pool == "decode":
        return "prefill, only where bidirectional_kv_xfer is on: else decode asks prefill"
    return (
        ", ".join(i.name for i in deployment.instances if i.pool == "decode")
        or "no instance of this deployment"
    )


def said_by(one: Listener) -> Iterator[str]:
    """The flags and variables that tell the program its port, by their names without dashes."""
    if isinstance(one.owner, Front):
        return
    port = str(one.endpoint.port)
    for argument in one.owner.arguments:
        if argument.value == port and "port" in argument.flag:
            yield argument.flag.removeprefix("--")
    if one.endpoint.name == "kv":
        yield from (v for v in one.owner.environment if v.endswith("_PORT"))


def _has(endpoint: Endpoint, port: int) -> bool:
    return endpoint.port <= port < endpoint.port + endpoint.count


def _layout_of(one: Listener, known: Known) -> Placed | None:
    layout, deployment = known.wanted.wish.profile.layout, known.wanted.deployment
    if layout is None or deployment is None or isinstance(one.owner, (RouterProcess, Front)):
        return layout.router if layout else None
    return layout.engines[deployment.instance(one.owner.instance).pool]


def _rank(process: Process, endpoint: Endpoint, offset: int, port: int | None, engine: Engine | None) -> str:
    """Which rank of the instance has that port, by the release's own arithmetic."""
    each = endpoint.count // len(process.ranks)
    word = engine.rank_port.removeprefix("base + ") if engine else ""
    if port is None and endpoint.count > 1:
        return f"{word}, {offset}–{offset + endpoint.count - 1}"
    rank = process.ranks[(offset - process.ranks[0].index * each) // each]
    gpus = f" (GPU {', '.join(map(str, rank.gpus))})" if rank.gpus else ""
    return f"{word} {offset}, of rank {rank.index}{gpus}"
