"""Every GPU at most once, every rank exactly once, no port twice, for any shape that is accepted."""

from __future__ import annotations

from collections import Counter
from itertools import product, starmap

from hypothesis import given
from hypothesis import strategies as st

from launcher.model.inventory import Host, Pool, PoolName
from launcher.model.profile import Hardware, PoolLayout, RankPort, Style
from launcher.resolve.ports import collisions, engine_endpoints
from launcher.resolve.topology import Seat, seats, shape_problems, shared_gpu_problems

H200 = Hardware(name="h200", about="", gpus_per_host=8)
STYLES: tuple[Style, ...] = ("internal", "hybrid", "external")
INDEX: RankPort = "base + data_parallel_index"


def hosts(names: tuple[str, ...]) -> dict[str, Host]:
    return {n: Host(n, f"10.0.0.{i}", "eth0", f"inventory.yaml:{i}") for i, n in enumerate(names, 11)}


def placed(
    layout: PoolLayout, count: int, instances: int, pool: PoolName = "decode"
) -> list[tuple[Seat, ...]]:
    names = tuple(f"{pool[0]}{i}" for i in range(count))
    own = Pool(pool, names, instances, 1, "inventory.yaml:9")
    return list(seats(own, layout, hardware=H200, hosts=hosts(names)))


def accepted(layout: PoolLayout) -> bool:
    """Can it be laid out on hosts that are enough?"""
    names = tuple(f"d{i}" for i in range(layout.hosts_per_instance))
    return not list(shape_problems(Pool("decode", names, 1, 1, "inventory.yaml:9"), layout, H200))


SHAPES = product([1, 2, 3, 4], [1, 2, 4, 8, 16], [1, 2, 3, 4, 8, 16, 32], STYLES)
layouts = st.sampled_from([layout for layout in starmap(PoolLayout, SHAPES) if accepted(layout)])


@given(layouts, st.integers(1, 3), st.integers(0, 2))
def test_every_gpu_at_most_once_and_every_rank_exactly_once(
    layout: PoolLayout, instances: int, spare: int
) -> None:
    groups = placed(layout, instances * layout.hosts_per_instance + spare, instances)
    assert [g[0].instance for g in groups] == [f"decode-{i}" for i in range(instances)]
    taken = Counter((s.host.name, gpu) for g in groups for s in g for r in s.ranks for gpu in r.gpus)
    assert set(taken.values()) == {1}
    assert all(gpu < H200.gpus_per_host for _, gpu in taken)
    for group in groups:
        assert len(group) == layout.hosts_per_instance
        assert [s.leads for s in group] == [True] + [False] * (len(group) - 1)
        assert {s.leader.name for s in group} == {group[0].host.name}
        gpus = Counter[int]()
        for rank in (r for s in group for r in s.ranks):
            gpus[rank.index] += len(rank.gpus)
        assert gpus == dict.fromkeys(range(layout.data_parallel), layout.tensor_parallel)
        if not group[0].spans:
            assert len([r for s in group for r in s.ranks]) == layout.data_parallel


@given(layouts, st.integers(1, 2))
def test_no_port_twice_and_every_rank_has_its_side_channel(layout: PoolLayout, instances: int) -> None:
    groups = placed(layout, instances * layout.hosts_per_instance, instances)
    every = [(s.instance, "x:1", e) for g in groups for s in g for e in engine_endpoints(s, INDEX)]
    assert not list(collisions(every))
    for group in groups:
        own = [e for s in group for e in engine_endpoints(s, INDEX)]
        kv = sorted(e.port + i for e in own if e.name == "kv" for i in range(e.count))
        assert kv == [layout.kv_port + r for r in range(layout.data_parallel)]
        api = sum(e.count for e in own if e.name == "api")
        assert api == {"internal": 1, "hybrid": len(group), "external": layout.data_parallel}[layout.style]


def test_a_gpu_had_a_side_channel_of_its_own_once() -> None:
    (group,) = placed(PoolLayout(hosts_per_instance=2, tensor_parallel=2, data_parallel=8), 2, 1)
    kv = [
        (e.port, e.count)
        for s in group
        for e in engine_endpoints(s, rank_port="base + dp_rank * tp_size")
        if e.name == "kv"
    ]
    assert kv == [(5600, 8), (5608, 8)]


def test_a_rank_over_two_hosts_takes_all_their_gpus() -> None:
    (group,) = placed(PoolLayout(hosts_per_instance=2, tensor_parallel=16), 2, 1)
    assert [(s.ranks[0].index, s.ranks[0].gpus) for s in group] == [(0, tuple(range(8)))] * 2
    assert [[e.name for e in engine_endpoints(s, INDEX)] for s in group] == [
        ["api", "rpc", "kv", "guard"],
        ["guard"],
    ]


def test_two_instances_on_one_host_are_told_apart_or_refused() -> None:
    one = PoolLayout(tensor_parallel=8, source="layout.yaml:3")
    (prefill,), (decode,) = (
        next(seats(Pool(p, ("a",), 1, 1, ""), one, hardware=H200, hosts=hosts(("a",))))
        for p in ("prefill", "decode")
    )
    (problem,) = shared_gpu_problems([prefill, decode])
    assert problem.what == "prefill-0 and decode-0 both take GPU 0 of a"
    every = [(s.instance, s.layout.source, e) for s in (prefill, decode) for e in engine_endpoints(s, INDEX)]
    told = [p.what for p in collisions(every)]
    assert told == [
        "port 8000 of a is wanted by prefill-0 api and decode-0 api",
        "port 5600 of a is wanted by prefill-0 kv and decode-0 kv",
        "port 5750 of a is wanted by prefill-0 guard and decode-0 guard",
    ]


def test_shapes_that_cannot_be_are_all_told_at_once() -> None:
    def told(layout: PoolLayout, count: int = 2) -> list[str]:
        names = tuple(f"h{i}" for i in range(count))
        return [p.what for p in shape_problems(Pool("decode", names, 2, 1, "i:1"), layout, H200)]

    assert told(PoolLayout(hosts_per_instance=2, tensor_parallel=2, data_parallel=16)) == [
        "decode needs 4 hosts, 2 × 2, but has 2",
        "decode needs 16 GPUs a host, hardware h200 has 8",
    ]
    assert told(PoolLayout(hosts_per_instance=3, data_parallel=8), 6) == [
        "decode: data_parallel 8 does not divide over 3 hosts"
    ]
    assert told(PoolLayout(data_parallel=1, style="external")) == [
        "decode: style external needs 2 or more ranks a host, found 1"
    ]
    assert told(PoolLayout(hosts_per_instance=2, tensor_parallel=16, style="hybrid"), 4) == [
        "decode: style hybrid with one rank over 2 hosts"
    ]
