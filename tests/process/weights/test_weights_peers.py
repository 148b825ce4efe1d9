"""weights_peers.py: programs of several hosts hand each other the blocks of a model."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from launcher.flows.weights import write_manifest

FOLDER = Path(__file__).parents[3] / "roles/weights/files"
BLOCK = 4096
WITHIN_S = 120


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
