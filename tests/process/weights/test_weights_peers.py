"""weights_peers.py: programs of several hosts hand each other the blocks of a model."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from launcher.flows.weights import write_manifest
from launcher.wait import wait_for

FOLDER = Path(__file__).parents[3] / "roles/weights/files"
BLOCK = 4096
WITHIN_S = 120
# stage_weights.py with other limits than weights_peers.py has, so that no host gives another up that is slow
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import stage_weights, weights_peers
vars(weights_peers).update(json.loads(sys.argv[2]))
sys.exit(stage_weights.main(sys.argv[3:]))
"""
PATIENT = dict.fromkeys(
    ("DEAD_AFTER_S", "BEGINS_WITHIN_S", "IDLE_S", "PATIENCE_S", "STALLED_S", "LINGER_S"), WITHIN_S
)


class Hosts:
    """The program of several hosts, each with a folder and an address of its own."""

    def __init__(self, root: Path, ports: Sequence[int], limits: Mapping[str, int], **told: int) -> None:
        self.root, self.limits, self.told = root, limits, told
        self.origin = root / "shared"
        self.origin.mkdir()
        (root / "key").write_text("of this run")
        self.names = [f"h{n:02}" for n in range(len(ports))]
        self.places = {name: ["127.0.0.1", port] for name, port in zip(self.names, ports, strict=True)}
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
            words: list[str | Path] = [FOLDER, json.dumps(self.limits), self.root / name / "model"]
            words += [self.origin, self.origin / "manifest.json"]
            self.running[name] = subprocess.Popen(
                [sys.executable, "-B", "-c", PROGRAM, *words],
                env=environment,
                stderr=subprocess.PIPE,
                text=True,
            )

    def end(self) -> dict[str, str]:
        """What each said last; empty where it ended well."""
        said = {name: running.communicate(timeout=WITHIN_S)[1] for name, running in self.running.items()}
        return {name: said[name] if running.returncode else "" for name, running in self.running.items()}

    def kill(self) -> None:
        """End what still runs."""
        for running in self.running.values():
            running.kill()
            running.communicate()

    def told_by(self, name: str) -> dict[str, int]:
        path = self.root / f"{name}.progress"
        return json.loads(path.read_text()) if path.exists() else {"done": 0}

    def digests(self) -> set[str]:
        files = [self.root / name / "model/model.bin" for name in self.names] + [self.origin / "model.bin"]
        return {hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    def read(self) -> int:
        return sum(self.told_by(name)["read"] for name in self.names)


def whole(told: Mapping[str, int]) -> bool:
    return told["done"] == told.get("total")


@pytest.fixture
def make_hosts(tmp_path: Path) -> Iterator[Callable[..., Hosts]]:
    """Makes hosts whose ports nobody else is given; what they run is ended after the test."""
    with ExitStack() as stack:

        def port() -> int:
            # bound and not listening: the host can listen there, and no connection begins there
            held = stack.enter_context(socket.socket())
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(("127.0.0.1", 0))
            return int(held.getsockname()[1])

        def make(count: int, limits: Mapping[str, int] = {}, **told: int) -> Hosts:
            hosts = Hosts(tmp_path, [port() for _ in range(count)], limits, **told)
            stack.callback(hosts.kill)
            return hosts

        yield make


@pytest.mark.parametrize("readers", [0, 1])
def test_four_hosts_read_each_byte_once(make_hosts: Callable[..., Hosts], readers: int) -> None:
    hosts = make_hosts(4, PATIENT, readers=readers)
    hosts.publish(40 * BLOCK + 10)
    hosts.start()
    assert set(hosts.end().values()) == {""}
    assert len(hosts.digests()) == 1
    assert hosts.read() == 40 * BLOCK + 12
    if readers:
        assert [hosts.told_by(name)["read"] > 0 for name in hosts.names] == [True, False, False, False]


def test_a_host_that_has_all_stays_for_those_that_begin_later(make_hosts: Callable[..., Hosts]) -> None:
    hosts = make_hosts(3, PATIENT, readers=1)
    hosts.publish(20 * BLOCK)
    hosts.start("h00")
    assert wait_for(lambda: hosts.told_by("h00"), whole, every_s=0.05, within_s=WITHIN_S).satisfied
    hosts.start("h01", "h02")
    assert set(hosts.end().values()) == {""}
    assert [hosts.told_by(name)["read"] for name in hosts.names] == [20 * BLOCK + 2, 0, 0]


def test_who_has_another_key_is_no_peer(make_hosts: Callable[..., Hosts], tmp_path: Path) -> None:
    hosts = make_hosts(2)
    hosts.publish(20 * BLOCK)
    (tmp_path / "other key").write_text("of somebody else")
    hosts.start("h00")
    hosts.start("h01", key="other key")
    assert set(hosts.end().values()) == {""}
    assert [hosts.told_by(name)["fetched"] for name in hosts.names] == [0, 0]
    assert len(hosts.digests()) == 1


def test_bytes_that_are_wrong_at_a_peer_are_had_elsewhere(
    make_hosts: Callable[..., Hosts], tmp_path: Path
) -> None:
    """h00 took a block for right that its disk has changed since; h01 sees it, and reads that one itself."""
    hosts = make_hosts(2)
    hosts.publish(20 * BLOCK)
    hosts.start("h00", key="")
    hosts.end()
    file = tmp_path / "h00/model/model.bin"
    right = file.read_bytes()
    file.write_bytes(right[: 5 * BLOCK] + b"?" + right[5 * BLOCK + 1 :])
    hosts.start("h00", "h01")
    assert set(hosts.end().values()) == {""}
    assert (tmp_path / "h01/model/model.bin").read_bytes() == right


def test_what_is_wrong_on_the_shared_file_system_is_told_by_all(
    make_hosts: Callable[..., Hosts], tmp_path: Path
) -> None:
    hosts = make_hosts(3, readers=1)
    hosts.publish(20 * BLOCK)
    with (hosts.origin / "model.bin").open("r+b") as file:
        file.seek(7 * BLOCK)
        file.write(b"?" * 10)
    hosts.start()
    said = hosts.end()
    assert {f"4096 bytes from {7 * BLOCK} on" in text for text in said.values()} == {True}
    assert not any((tmp_path / name / "model").exists() for name in hosts.names)
