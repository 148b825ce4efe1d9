"""Which ranks sit on which host and GPU; knows no ports, no flags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from launcher.model.deployment import Rank
from launcher.model.inventory import Host, Pool
from launcher.model.problem import Problem
from launcher.model.profile import EnginePool, Hardware, PoolLayout


@dataclass(frozen=True, slots=True)
class Seat:
    """One process before it has ports and flags: an instance's part on one host."""

    pool: EnginePool
    instance: str
    index: int
    """Position of the host in its instance; 0 leads."""
    host: Host
    leader: Host
    ranks: tuple[Rank, ...]
    layout: PoolLayout
    transfers: bool
    """KV goes to or comes from other instances, through the engine's own connector."""

    @property
    def leads(self) -> bool:
        """Holds rank 0: the others connect to it."""
        return self.index == 0

    @property
    def spans(self) -> bool:
        """One rank lies over several hosts, its tensor-parallel ranks divided among them."""
        return self.layout.hosts_per_instance > 1 and self.layout.data_parallel == 1

    @property
    def headless(self) -> bool:
        """Runs engines only: the leader answers for it."""
        return not self.leads and self.layout.style == "internal"


def ranks_per_host(layout: PoolLayout) -> int:
    """Data-parallel ranks in one process; 1 where one rank spans the hosts."""
    return max(1, layout.data_parallel // layout.hosts_per_instance)


def gpus_per_process(layout: PoolLayout) -> int:
    """GPUs that an instance takes on each of its hosts."""
    return layout.tensor_parallel * layout.data_parallel // layout.hosts_per_instance


def seat_ranks(layout: PoolLayout, index: int, hardware: Hardware) -> tuple[Rank, ...]:
    """The ranks of an instance's process number `index`, on consecutive GPUs from 0."""
    count = ranks_per_host(layout)
    each = gpus_per_process(layout) // count
    first = 0 if layout.data_parallel == 1 else index * count
    return tuple(
        Rank(first + r, tuple(range(r * each, (r + 1) * each)) if hardware.gpus_per_host else ())
        for r in range(count)
    )


def seats(
    pool: Pool,
    layout: PoolLayout,
    *,
    hardware: Hardware,
    hosts: Mapping[str, Host],
    transfers: bool = True,
) -> Iterator[tuple[Seat, ...]]:
    """The processes of each instance of a pool; an instance takes the next hosts in the pool's order.

    The layout must be free of `shape_problems`.
    """
    assert pool.name != "router", "no engine sits there"
    width = layout.hosts_per_instance
    for number in range(pool.instances):
        own = [hosts[name] for name in pool.hosts[number * width : (number + 1) * width]]
        yield tuple(
            Seat(
                pool=pool.name,
                instance=f"{pool.name}-{number}",
                index=index,
                host=host,
                leader=own[0],
                ranks=seat_ranks(layout, index, hardware),
                layout=layout,
                transfers=transfers,
            )
            for index, host in enumerate(own)
        )


def shape_problems(pool: Pool, layout: PoolLayout, hardware: Hardware) -> Iterator[Problem]:
    """All that keeps a pool's instances from being laid out on its hosts."""
    width, ranks, tensor = layout.hosts_per_instance, layout.data_parallel, layout.tensor_parallel
    needed = pool.instances * width
    if needed > len(pool.hosts):
        yield Problem(
            what=f"{pool.name} needs {needed} hosts, {pool.instances} × {width}, but has {len(pool.hosts)}",
            where=pool.source,
            why=f"hosts_per_instance is {width} ({layout.source})",
            do=f"add hosts to pools.{pool.name}.hosts or lower pools.{pool.name}.instances",
        )
    spans = ranks == 1 and width > 1
    divided, name = (tensor, "tensor_parallel") if spans else (ranks, "data_parallel")
    if divided % width:
        yield Problem(
            what=f"{pool.name}: {name} {divided} does not divide over {width} hosts",
            where=layout.source,
            why="each host of an instance carries the same number of ranks",
            do=f"make {name} a multiple of hosts_per_instance",
        )
        return
    yield from _style_problems(pool.name, layout, spans=spans)
    if hardware.gpus_per_host and gpus_per_process(layout) > hardware.gpus_per_host:
        yield Problem(
            what=f"{pool.name} needs {gpus_per_process(layout)} GPUs a host, "
            f"hardware {hardware.name} has {hardware.gpus_per_host}",
            where=layout.source,
            why=f"tensor_parallel {tensor} × data_parallel {ranks} over {width} hosts",
            do="raise hosts_per_instance or lower data_parallel or tensor_parallel",
        )


def _style_problems(pool: str, layout: PoolLayout, *, spans: bool) -> Iterator[Problem]:
    if spans and layout.style != "internal":
        yield Problem(
            what=f"{pool}: style {layout.style} with one rank over {layout.hosts_per_instance} hosts",
            where=layout.source,
            why="there is nothing to balance over: one rank has one API endpoint",
            do="write `style: internal`, or raise data_parallel",
        )
    elif layout.style == "external" and ranks_per_host(layout) < 2:
        yield Problem(
            what=f"{pool}: style external needs 2 or more ranks a host, found {ranks_per_host(layout)}",
            where=layout.source,
            why="vLLM's multi-port mode refuses a local data-parallel size below 2",
            do="write `style: hybrid`, or raise data_parallel",
        )


def shared_gpu_problems(placed: Iterable[Seat]) -> Iterator[Problem]:
    """Two instances on the same GPU of a host."""
    owners: dict[tuple[str, int], Seat] = {}
    told: set[tuple[str, str]] = set()
    for seat in placed:
        for gpu in (g for rank in seat.ranks for g in rank.gpus):
            other = owners.setdefault((seat.host.name, gpu), seat)
            if other is seat or (other.instance, seat.instance) in told:
                continue
            told.add((other.instance, seat.instance))
            yield Problem(
                what=f"{other.instance} and {seat.instance} both take GPU {gpu} of {seat.host.name}",
                where=seat.host.source,
                why=f"laid out by {other.layout.source} and {seat.layout.source}",
                do="give each engine pool hosts of its own",
            )
