"""`check` on real hosts without GPUs: faults of hosts and pairs, and what `up` refuses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from stub_fleet import Done, StubFleet


def wrong(done: Done) -> dict[str, list[str]]:
    """Check → hosts of what is wrong."""
    found: dict[str, set[str]] = {}
    for told in done.lines("check"):
        if told["verdict"] == "wrong":
            found.setdefault(told["id"], set()).update(told["hosts"])
    return {name: sorted(hosts) for name, hosts in found.items()}


@pytest.fixture
def still(stubs: StubFleet) -> Iterator[StubFleet]:
    """Hosts that serve nothing, put right afterwards."""
    for host in stubs.hosts:
        host.exec("sh", "-c", "systemctl stop 'dsv32-*'; ip link set eth0 mtu 1500")
    yield stubs
    for host in stubs.hosts:
        undo = "ip link set eth0 mtu 1500; ip route flush type blackhole; systemctl stop squatter"
        host.exec("sh", "-c", undo)


def test_faults_of_hosts_and_pairs_are_named_and_nothing_else(still: StubFleet) -> None:
    clean = still.run("check", "--json")
    assert (clean.code, wrong(clean)) == (0, {}), clean.stdout
    addresses = {host.name: host.address for host in still.hosts}
    still.host("h02").exec("ip", "route", "add", "blackhole", addresses["h03"])
    still.host("h04").exec("ip", "link", "set", "eth0", "mtu", "1400")
    squatter = ("systemd-run", "--unit=squatter", "python3", "-m", "http.server", "8000")
    still.host("h01").exec(*squatter)
    broken = still.run("check", "--json")
    found = wrong(broken)
    assert broken.code == 1, broken.stdout
    assert found.pop("mtu-same") == ["h04"]
    assert found.pop("ports-free") == ["h01"]
    assert {"h01"} < set(found.pop("peers-mtu"))
    assert found.pop("peers-reachable") == ["h02", "h03"]
    assert found == {}
    told = still.run("check").stdout
    assert "MTU of the serving interfaces: 3 of 4 hosts 1500, h04 1400" in told
    assert "owner   network team" in told
    up_refuses(still)


def up_refuses(still: StubFleet) -> None:
    """Nothing is changed while it is red, unless it is meant; and that is written down with its reason."""
    before = still.state()
    refused = still.up()
    assert refused.code == 1
    assert {"peers-reachable", "peers-mtu", "ports-free"} == {
        p["more"].rpartition(" ")[2] for p in refused.problems
    }
    assert still.state() == before
    still.host("h02").exec("ip", "route", "flush", "type", "blackhole")
    still.host("h01").exec("systemctl", "stop", "squatter")
    meant = still.up("--despite", "peers-mtu", "-m", "the old switch")
    assert meant.code == 0, meant.stderr
    assert [e["subject"] for e in still.events("despite")] == ["peers-mtu"]
    assert "the old switch" in still.run("audit", "--json").stdout
