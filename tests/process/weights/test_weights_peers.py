"""weights_peers.py: which block from whom, as pure choices, and programs of several hosts that make it so."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.flows.weights import write_manifest

FOLDER = Path(__file__).parents[3] / "roles/weights/files"
BLOCK = 4096
WITHIN_S = 120


def numbers(blocks: int) -> set[int]:
    return {n for n in range(blocks.bit_length()) if blocks >> n & 1}


@given(st.integers(1, 200), st.integers(1, 20))
def test_shares_are_all_blocks_and_each_once(peers: ModuleType, total: int, parts: int) -> None:
    shares = [numbers(peers.share(total, parts, part)) for part in range(parts)]
    assert sorted(n for each in shares for n in each) == list(range(total))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


class Simulation:
    """Hosts that choose in turns, whose every choice succeeds before the next one chooses."""

    def __init__(self, peers: ModuleType, hosts: int, readers: int, total: int) -> None:
        self.peers, self.readers, self.total = peers, readers, total
        self.have = {f"h{n:02}": 0 for n in range(hosts)}
        self.reads: Counter[int] = Counter()
        self.sends: Counter[tuple[str, int]] = Counter()

    def step(self, me: str) -> bool:
        """Whether it could fetch a block."""
        alive = tuple(sorted(self.have))
        need = ~self.have[me] & ((1 << self.total) - 1)
        others = {name: have for name, have in self.have.items() if name != me}
        busy = dict.fromkeys(others, 0)
        view = self.peers.View(me, alive, alive[: self.readers], self.total, need, others, busy)
        found = self.peers.choose(view) if need else None
        if found is None:
            return False
        name, block = found
        assert need >> block & 1, "it is missing here"
        if name == self.peers.ORIGIN:
            assert me in view.readers
            self.reads[block] += 1
        else:
            assert others[name] >> block & 1, "it is there"
            self.sends[name, block] += 1
        self.have[me] |= 1 << block
        return True

    def run(self, order: Sequence[int], deaths: Sequence[int] = ()) -> None:
        """In an order that repeats, until nobody can fetch more; every so many steps a host dies for good."""
        steps, left = 0, list(deaths)
        while True:
            names = list(self.have)
            moved = [self.step(names[n % len(names)]) for n in order if names]
            moved += [self.step(name) for name in names]
            steps += 1
            if left and len(self.have) > 1 and steps % 3 == 0:
                del self.have[names[left.pop() % len(names)]]
            elif not any(moved):
                return


@settings(max_examples=60)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 40), st.lists(st.integers(0, 99), max_size=9))
def test_every_host_gets_all_and_each_block_is_read_once(
    peers: ModuleType, hosts: int, readers: int, total: int, order: list[int]
) -> None:
    fleet = Simulation(peers, hosts, readers, total)
    fleet.run(order)
    assert set(fleet.have.values()) == {(1 << total) - 1}
    assert dict(fleet.reads) == dict.fromkeys(range(total), 1)
    if readers == 1 and hosts > 2:
        assert all(count == 1 for (name, _), count in fleet.sends.items() if name == "h00")


@settings(max_examples=60)
@given(
    st.integers(2, 9),
    st.integers(1, 9),
    st.integers(1, 40),
    st.lists(st.integers(0, 99), max_size=9),
    st.lists(st.integers(0, 99), min_size=1, max_size=4),
)
def test_hosts_that_die_cost_a_second_read_at_most_of_what_only_they_had(
    peers: ModuleType, hosts: int, readers: int, total: int, order: list[int], deaths: list[int]
) -> None:
    fleet = Simulation(peers, hosts, readers, total)
    fleet.run(order, deaths)
    assert set(fleet.have.values()) == {(1 << total) - 1}
    assert max(fleet.reads.values()) <= 1 + len(deaths)


def test_what_a_peer_has_is_not_read_unless_it_did_not_give_it(peers: ModuleType) -> None:
    """h01 of three is the home of block 1 and has not got it: h02 asks the reader, after a while."""
    view = peers.View(
        "h02", ("h00", "h01", "h02"), ("h00",), 3, 0b001, {"h00": 0b111, "h01": 0}, {"h00": 0, "h01": 0}
    )
    assert peers.choose(view) is None
    assert peers.choose(view, patient=True) == ("h00", 0)
    reads = view._replace(me="h00", have={"h01": 0b001, "h02": 0}, busy={"h01": 0, "h02": 0})
    assert peers.choose(reads) == ("h01", 0)
    assert peers.choose(reads, patient=True) == ("h01", 0)
    assert peers.choose(reads._replace(ungiven=0b001)) == ("", 0)


class Hosts:
    """The program of several hosts, each with a folder and an address of its own."""

    def __init__(self, root: Path, count: int, **told: int) -> None:
        self.root, self.told = root, told
        self.origin = root / "shared"
        self.origin.mkdir()
        (root / "key").write_text("of this run")
        self.names = [f"h{n:02}" for n in range(count)]
        self.places = {
            name: ["127.0.0.1", port] for name, port in zip(self.names, free_ports(count), strict=True)
        }
        self.running: dict[str, subprocess.Popen[str]] = {}

    def publish(self, size: int) -> None:
        (self.origin / "config.json").write_text("{}")
        (self.origin / "model.bin").write_bytes(os.urandom(size))
        write_manifest(self.origin, lambda _: None, block_bytes=BLOCK)

    def start(self, *names: str, key: Path | str = "key") -> None:
        """`key`: a file beside the others; none: the program knows no peers."""
        for name in names or self.names:
            fleet = {"host": name, "peers": self.places, "readers": 0, "streams": 4, **self.told}
            environment = {
                **os.environ,
                "DSV32_FLEET": json.dumps(fleet),
                "DSV32_KEY": str(self.root / key) if key else "",
                "DSV32_PROGRESS": str(self.root / f"{name}.progress"),
            }
            words = [self.root / name / "model", self.origin, self.origin / "manifest.json"]
            self.running[name] = subprocess.Popen(
                [sys.executable, FOLDER / "stage_weights.py", *words],
                env=environment,
                stderr=subprocess.PIPE,
                text=True,
            )

    def end(self) -> dict[str, str]:
        """What each said last; empty where it ended well."""
        said = {name: running.communicate(timeout=WITHIN_S)[1] for name, running in self.running.items()}
        return {name: said[name] if running.returncode else "" for name, running in self.running.items()}

    def told_by(self, name: str) -> dict[str, int]:
        path = self.root / f"{name}.progress"
        return json.loads(path.read_text()) if path.exists() else {"done": 0}

    def digests(self) -> set[str]:
        files = [self.root / name / "model/model.bin" for name in self.names] + [self.origin / "model.bin"]
        return {hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    def read(self) -> int:
        return sum(self.told_by(name)["read"] for name in self.names)


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.mark.parametrize("readers", [0, 1])
def test_four_hosts_read_each_byte_once(tmp_path: Path, readers: int) -> None:
    hosts = Hosts(tmp_path, 4, readers=readers)
    hosts.publish(40 * BLOCK + 10)
    hosts.start()
    assert set(hosts.end().values()) == {""}
    assert len(hosts.digests()) == 1
    assert hosts.read() == 40 * BLOCK + 12
    if readers:
        assert [hosts.told_by(name)["read"] > 0 for name in hosts.names] == [True, False, False, False]


def test_who_has_another_key_is_no_peer(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path, 2)
    hosts.publish(20 * BLOCK)
    (tmp_path / "other key").write_text("of somebody else")
    hosts.start("h00")
    hosts.start("h01", key="other key")
    assert set(hosts.end().values()) == {""}
    assert [hosts.told_by(name)["fetched"] for name in hosts.names] == [0, 0]
    assert len(hosts.digests()) == 1


def test_bytes_that_are_wrong_at_a_peer_are_had_elsewhere(tmp_path: Path) -> None:
    """h00 took a block for right that its disk has changed since; h01 sees it, and reads that one itself."""
    hosts = Hosts(tmp_path, 2)
    hosts.publish(20 * BLOCK)
    hosts.start("h00", key="")
    hosts.end()
    file = tmp_path / "h00/model/model.bin"
    right = file.read_bytes()
    file.write_bytes(right[: 5 * BLOCK] + b"?" + right[5 * BLOCK + 1 :])
    hosts.start("h00", "h01")
    assert set(hosts.end().values()) == {""}
    assert (tmp_path / "h01/model/model.bin").read_bytes() == right


def test_what_is_wrong_on_the_shared_file_system_is_told_by_all(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path, 3, readers=1)
    hosts.publish(20 * BLOCK)
    with (hosts.origin / "model.bin").open("r+b") as file:
        file.seek(7 * BLOCK)
        file.write(b"?" * 10)
    hosts.start()
    said = hosts.end()
    assert {f"4096 bytes from {7 * BLOCK} on" in text for text in said.values()} == {True}
    assert not any((tmp_path / name / "model").exists() for name in hosts.names)
