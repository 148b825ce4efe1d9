"""Every endpoint's port, and collisions; knows nothing of flags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from launcher.model.deployment import SLOTS, Deployment, Endpoint, EndpointName, Slot
from launcher.model.inventory import Host
from launcher.model.problem import Problem
from launcher.model.profile import RankPort, RouterLayout, place_of
from launcher.model.role import Step
from launcher.resolve.topology import Seat
from launcher.steps import weights


def engine_endpoints(seat: Seat, rank_port: RankPort) -> tuple[Endpoint, ...]:
    """What one process listens on, apart from the ephemeral ports of NCCL, Gloo, NVSHMEM, UCX and ZMQ.

    api: one for the leader (internal), each host (hybrid) or each rank (external); it also has /metrics.
    rpc: on the leader of several hosts. kv: the NIXL side channel, one a local rank at base + global rank, or
    one a GPU in the releases that counted those. guard: UDP, of the host's guard.
    """
    layout, host = seat.layout, seat.host
    endpoints: list[Endpoint] = []

    def listen(name: EndpointName, port: int, count: int = 1) -> None:
        source = place_of(layout, f"{name}_port")
        endpoints.append(Endpoint(name, host.name, host.address, port, count, source))

    if not seat.headless:
        listen("api", layout.api_port, len(seat.ranks) if layout.style == "external" else 1)
    if layout.style == "external":
        listen("supervisor", layout.supervisor_port)
    if seat.leads and layout.hosts_per_instance > 1:
        listen("rpc", layout.rpc_port)
    if seat.transfers and (seat.leads or not seat.spans):
        each = layout.tensor_parallel if rank_port == "base + dp_rank * tp_size" else 1
        listen("kv", layout.kv_port + seat.ranks[0].index * each, len(seat.ranks) * each)
    listen("guard", layout.guard_port)
    return tuple(endpoints)


def router_endpoints(host: Host, layout: RouterLayout, slot: Slot) -> tuple[Endpoint, ...]:
    """What one of the two routers of a host listens on; only fronts send requests there."""
    place = SLOTS.index(slot)

    def listening(name: EndpointName, port: int, field: str) -> Endpoint:
        return Endpoint(name, host.name, host.address, port + place, source=place_of(layout, field))

    return (
        listening("router", layout.port, "port"),
        listening("router-metrics", layout.metrics_port, "metrics_port"),
    )


def front_endpoints(host: Host, layout: RouterLayout) -> tuple[Endpoint, Endpoint]:
    """Where users come in, and where the front tells of itself."""
    users, metrics = place_of(layout, "front_port"), place_of(layout, "front_metrics_port")
    return (
        Endpoint("front", host.name, host.address, layout.front_port, source=users),
        Endpoint("front-metrics", host.name, host.address, layout.front_metrics_port, source=metrics),
    )


def weights_endpoints(host: Host, steps: Iterable[Step]) -> Iterator[Endpoint]:
    """Where other hosts ask this one for blocks of weights, while its job brings them."""
    for step in steps:
        if isinstance(step.want, weights.Params) and step.want.peers and not step.want.in_place:
            yield Endpoint("weights", host.name, host.address, step.want.port, source=step.source)


def beside_weights(deployment: Deployment, staged: Iterable[Endpoint]) -> Iterator[Problem]:
    """What serves and wants the port where weights are staged."""
    processes = (p for i in deployment.instances for p in i.processes)
    serving = [(p.instance, e.source, e) for p in processes for e in p.endpoints]
    serving += [(f"router {r.slot}", e.source, e) for r in deployment.routers for e in r.endpoints]
    serving += [("router", e.source, e) for f in deployment.fronts for e in (f.endpoint, f.metrics)]
    yield from collisions([*serving, *(("staging", e.source, e) for e in staged)])


def collisions(listeners: Iterable[tuple[str, str, Endpoint]]) -> Iterator[Problem]:
    """Ports of one host that two endpoints want, or that no host has.

    A listener is its owner's name, the source of its ports, and the endpoint.
    """
    taken: dict[tuple[str, int], tuple[str, str, Endpoint]] = {}
    told: set[tuple[Endpoint, Endpoint]] = set()
    for owner, source, endpoint in listeners:
        last = endpoint.port + endpoint.count - 1
        if last > 65535:
            yield Problem(
                what=f"{owner} {endpoint.name} needs ports {endpoint.port}–{last}, the highest is 65535",
                where=source,
                do="choose a lower first port",
            )
            continue
        for port in range(endpoint.port, last + 1):
            other = taken.setdefault((endpoint.host, port), (owner, source, endpoint))
            if other[2] is endpoint or (other[2], endpoint) in told:
                continue
            told.add((other[2], endpoint))
            yield Problem(
                what=f"port {port} of {endpoint.host} is wanted by {other[0]} {other[2].name} "
                f"and {owner} {endpoint.name}",
                where=source,
                why=f"the other one is set in {other[1]}",
                do="give one of them another port in the layout",
            )
