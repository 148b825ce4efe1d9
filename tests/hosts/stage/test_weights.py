"""Weights on real hosts: whatever is killed, flipped, cut or full, all end with the bytes of the manifest."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stub_fleet import StubFleet
from witness import said

from launcher.flows.weights import write_manifest
from launcher.sandbox import Sandbox

ROOT = Path(__file__).parents[3]
MIB, BLOCK = 48, 1 << 20
STACK = 'about: Weights alone.\nroles: [os-base, weights]\npython: "3.11"\npackages: {logrotate: ""}\n'
# the shipped role, for hosts that serve nothing, by one reader that is slow enough to be killed meanwhile
SLOW = {
    "pools: [prefill, decode]\n": "",
    "{{ deployment.model_path }}": "{{ paths.local }}/big",
    "{{ model.folder }}": "big",
    '{% for pool in inventory.pools.values() if pool.name != "router" %}{% for name in pool.hosts -%}': (
        "{% for name in inventory.hosts -%}"
    ),
    "{% endfor %}{% endfor %}": "{% endfor %}",
    "    keep: 2": "    readers: 1\n    read_mib_s: 8\n    keep: 2",
}


class Staging(StubFleet):
    """Hosts that only stage a model."""

    def write(self, **words: Any) -> Path:
        inventory = {
            "cluster": "staging",
            "stack": "weights",
            "ssh": {"config": str(self.sandbox.ssh_config), "connect_within_s": 10},
            "paths": {"shared": "/gpfs", "local": "/nvme"},
            "hosts": {host.name: {} for host in self.hosts},
        }
        path = self.folder / "stub.yaml"
        path.write_text(json.dumps(inventory, indent=1))
        data = self.folder / "data"
        shutil.copytree(ROOT / "roles/weights", data / "roles/weights")
        role = data / "roles/weights/role.yaml"
        text = role.read_text()
        for old, new in SLOW.items():
            assert old in text
            text = text.replace(old, new)
        role.write_text(text)
        (data / "configs/stacks").mkdir(parents=True)
        (data / "configs/stacks/weights.yaml").write_text(STACK)
        return path

    def hurry(self) -> None:
        """No limit to how fast the shared file system is read."""
        role = self.folder / "data/roles/weights/role.yaml"
        role.write_text(role.read_text().replace("read_mib_s: 8", "read_mib_s: 0"))

    def publish(self, seed: int) -> None:
        """A model of two shards, new with each seed."""
        folder = self.sandbox.gpfs / "models/big"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text("{}")
        for number in range(2):
            (folder / f"{number}.bin").write_bytes(random.Random(2 * seed + number).randbytes(MIB << 19))
        write_manifest(folder, lambda _: None, block_bytes=BLOCK)

    def command(self, *words: str) -> Any:
        return self.run(*words, "--json", data=self.folder / "data")

    def weights(self) -> dict[str, dict[str, Any]]:
        """By host, what `weights status` says."""
        return {told["host"]: told for told in self.command("weights", "status").lines("host-weights")}

    def progress(self, host: str) -> dict[str, int]:
        """What the job of a host told last."""
        text = self.host(host).exec("sh", "-c", "cat /run/dsv32/job-weights-*.progress").stdout
        return json.loads(text) if text else {"done": 0, "read": 0, "fetched": 0}

    def await_done(self, host: str, size: int) -> None:
        until_s = time.monotonic() + 120
        while self.progress(host)["done"] < size:
            assert time.monotonic() < until_s, self.progress(host)
            time.sleep(0.1)

    def right(self) -> bool:
        """Has each host, by an independent witness, the files of the shared file system?"""
        names = ("0.bin", "1.bin", "config.json")
        origin = self.sandbox.gpfs / "models/big"
        digests = [hashlib.sha256((origin / name).read_bytes()).hexdigest() for name in names]
        files = " ".join(f"/nvme/big/{name}" for name in names)
        return all(
            [line.split()[0] for line in said(host, f"sha256sum {files}").splitlines()] == digests
            for host in self.hosts
        )


@pytest.fixture
def staging(sandbox: Sandbox, tmp_path: Path) -> Iterator[Staging]:
    made = Staging(sandbox, tmp_path)
    made.bare()
    made.publish(0)
    yield made
    made.bare()
    shutil.rmtree(sandbox.gpfs / "models/big")


def test_killed_source_target_and_controller_end_whole(staging: Staging) -> None:
    """The reader dies, then a target, then the controller; two hosts go on, and `up` again ends it."""
    begun = staging.start("up", "--yes", data=staging.folder / "data")
    for host, share in (("h01", 4), ("h03", 3)):
        staging.await_done(host, (MIB << 20) // share)
        staging.host(host).exec("systemctl", "kill", "-s", "KILL", "dsv32-job-weights-*")
    kept = staging.progress("h03")["done"]
    begun.process.send_signal(signal.SIGKILL)
    assert "weights of all" in begun.ended().stderr
    staging.await_done("h02", (MIB << 20) // 2)
    told = staging.weights()
    assert [told[host]["state"] for host in ("h01", "h02", "h03", "h04")] == [
        "failed",
        "staging",
        "failed",
        "staging",
    ]
    assert told["h02"]["per_s"] > 0
    assert told["h02"]["left_s"] > 0
    done = staging.command("up", "--yes")
    assert done.code == 0, done.stdout
    assert staging.right()
    again = staging.progress("h03")
    assert again["read"] + again["fetched"] <= (MIB << 20) - kept + 8 * BLOCK, "what was there is kept"
    assert {told["state"] for told in staging.weights().values()} == {"complete"}


def test_flipped_and_cut_shards_are_named_and_only_they_are_mended(staging: Staging) -> None:
    """A forecast, then a full disk: it is said before the first byte, and the other hosts have all."""
    staging.hurry()
    (told,) = staging.command("plan").lines("plan")
    assert f"weights: {4 * MIB}.0 MiB for 4 hosts, {MIB}.0 MiB of it read once: " in told["remark"]
    staging.host("h02").fill("/nvme")
    done = staging.command("up", "--yes")
    assert done.code == 1
    assert [(p["where"].split(",")[0], "make room there" in p["why"]) for p in done.problems] == [
        ("h02", True)
    ]
    staging.host("h02").free()
    assert staging.command("up", "--yes").code == 0
    assert staging.right()

    flip = "import os; f = os.open('/nvme/big/1.bin', os.O_RDWR); b = os.pread(f, 1, 5000000)[0]"
    said(staging.host("h03"), f'python3 -c "{flip}; os.pwrite(f, bytes([b ^ 1]), 5000000)"')
    said(staging.host("h04"), f"truncate -s {(MIB << 19) - 3 * BLOCK} /nvme/big/0.bin")
    found = staging.command("weights", "verify", "-m", "a disk was changed")
    assert found.code == 1
    assert {(p["where"], p["what"].partition(" ")[0]) for p in found.problems} == {
        ("h03", "1.bin"),
        ("h04", "0.bin"),
    }
    done = staging.command("up", "--yes")
    assert done.code == 0, done.stdout
    assert staging.right()
    brought = {host: staging.progress(host) for host in ("h03", "h04")}
    assert [p["read"] + p["fetched"] for p in brought.values()] == [BLOCK, 3 * BLOCK]
    assert staging.command("weights", "verify", "-m", "once more").code == 0


def test_in_place_engines_read_the_shared_folder_and_a_shard_that_grew_is_named(stubs: StubFleet) -> None:
    """It is read ahead, once; then nothing is left to do until the folder is another one."""
    stubs.bare()
    paths = {"shared": "/gpfs", "local": "/nvme", "weights": "in-place"}
    stubs.write(layout="stub-single", pools={"decode": {"hosts": ["h02", "h03"]}}, paths=paths)
    planned = stubs.plan()
    assert planned.lines("plan"), planned.stdout + planned.stderr
    remark = planned.lines("plan")[0]["remark"]
    assert "weights in place: 2.0 MiB read by 2 hosts: " in remark
    assert "staged (`paths: {weights: staged}`), 1.0 MiB would be read once: " in remark
    assert stubs.up().code == 0
    host = stubs.host("h02")
    assert " /gpfs/models/tiny" in said(host, "cat /etc/systemd/system/dsv32-decode-0.service")
    assert said(host, "find /nvme/models -mindepth 1; find /gpfs/models -name '.tiny*'") == ""
    assert '"text": "bytes read ahead"' in said(host, "cat /run/dsv32/job-weights-*.progress")
    told = stubs.run("weights", "status", "--json").lines("host-weights")
    assert [(h["host"], h["state"], h["note"]) for h in told] == [
        ("h02", "complete", "in place"),
        ("h03", "complete", "in place"),
    ]
    verified = stubs.run("weights", "verify", "-m", "new", "--json")
    assert [(f["subject"], f["severity"]) for f in verified.lines("finding")] == [("h02", "OK")]
    again = stubs.plan()
    assert (again.code, again.changes) == (0, [])

    shard = stubs.sandbox.gpfs / "models/tiny/model.safetensors"
    size = shard.stat().st_size
    with shard.open("ab") as file:
        file.write(b"x")
    try:
        changes = {c["host"]: c["before"] for c in stubs.plan().lines("change")}
        assert changes == dict.fromkeys(("h02", "h03"), f"model.safetensors has {size + 1} of {size} bytes")
        done = stubs.up()
        assert done.code == 1
        assert all("model.safetensors: of another size" in p["why"] for p in done.problems)
    finally:
        with shard.open("ab") as file:
            file.truncate(size)
    assert stubs.up().code == 0
    assert stubs.plan().changes == []
