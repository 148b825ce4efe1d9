"""An address that moves between two hosts that route, under a steady load, with real keepalived."""

from __future__ import annotations

import time

from routed_fleet import POOLS, RoutedFleet
from witness import said

ROUTING = ("h01", "h04")
WITHIN_S = 60


def holders(routed: RoutedFleet, address: str, among: tuple[str, ...] = ROUTING) -> list[str]:
    """The hosts that have it, by an independent witness."""
    show = f"ip -o address show to {address}"
    return [name for name in among if said(routed.host(name), show).strip()]


def taken_over(routed: RoutedFleet, address: str, by: str) -> float:
    """When it had it."""
    until_s = time.monotonic() + WITHIN_S
    while by not in holders(routed, address, (by,)):
        assert time.monotonic() < until_s, f"{by} does not take it"
        time.sleep(0.1)
    return time.monotonic()


def test_it_moves_when_a_front_or_its_host_is_lost(routed: RoutedFleet) -> None:
    address = routed.host("h04").address.rpartition(".")[0] + ".200"
    routed.inventory(pools={**POOLS, "router": {"hosts": list(ROUTING)}}, front={"address": f"{address}/24"})
    done = routed.up()
    assert done.code == 0, done.stdout
    assert routed.up().changes == []
    (first,) = holders(routed, address)
    second = next(name for name in ROUTING if name != first)
    assert f"{first}  active  http://{address}:8080 answers, has the address" in routed.run("status").stdout

    with routed.users(address, within_s=10) as load:
        said(routed.host(first), "systemctl stop dsv32-front")
        moved_s = taken_over(routed, address, second)
        load.for_s(3)
    print(f"HAProxy stopped on {first}: {load}")
    assert load.failed, "what it had begun"
    assert not load.failed_after(moved_s + 1)
    said(routed.host(first), "systemctl start dsv32-front")
    taken_back(routed, address, first, second)


def taken_back(routed: RoutedFleet, address: str, first: str, second: str) -> None:
    """A front that is well again does not take it back; it takes it when the other host has no power."""
    time.sleep(4)
    assert holders(routed, address) == [second]
    with routed.users(address, within_s=10) as load:
        routed.host(second).kill()
        moved_s = taken_over(routed, address, first)
        load.for_s(3)
    print(f"{second} without power: {load}")
    assert not [t for t in load.failed_after(moved_s + 1) if t.how != "503"], "of its engine, for a moment"
    routed.host(second).start()
