"""A deployment of stubs on four real hosts, and the installed command line that runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from witness import served_state

from launcher.sandbox import Sandbox, SandboxHost
from launcher.sandbox.boot import Disks

DISKS = Disks(nvme="512m")
"""Of each host."""
COMMAND = Path(sys.executable).with_name("dsv32-launch")
DATA = Path(__file__).with_name("data")
POOLS = {"prefill": {"hosts": ["h01"]}, "decode": {"hosts": ["h02", "h03"]}, "router": {"hosts": ["h04"]}}
WITHIN_S = 300
BARE = """
systemctl stop 'dsv32-*'
rm -rf /etc/systemd/system/dsv32-* /etc/systemd/system/*.wants/dsv32-*
rm -rf /etc/systemd/system/systemd-journald.service.d /etc/dsv32
rm -rf /etc/systemd/journald.conf.d/90-dsv32.conf /etc/tmpfiles.d/dsv32.conf /etc/logrotate.d/dsv32
rm -rf /etc/security/limits.d/90-dsv32.conf /etc/sysctl.d/90-dsv32.conf /usr/local/lib/dsv32
rm -rf /nvme/* /nvme/.[!.]* /var/lib/dsv32 /var/log/dsv32 /run/dsv32 /run/dsv32.lock
systemctl daemon-reload; systemctl reset-failed; systemctl restart systemd-journald
"""


@dataclass(frozen=True)
class Done:
    """A command that has ended, called with --json or not."""

    code: int
    stdout: str
    stderr: str

    def lines(self, kind: str) -> list[dict[str, Any]]:
        """The JSON lines of one type."""
        lines = (json.loads(line) for line in self.stdout.splitlines())
        return [line for line in lines if line["type"] == kind]

    @property
    def problems(self) -> list[dict[str, Any]]:
        """What it says is wrong."""
        return self.lines("problem")

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        """Host, step and action of each change of its plan."""
        return [(c["host"], c["step"], c["action"]) for c in self.lines("change")]


@dataclass(frozen=True)
class Begun:
    """A command that runs; it writes into files, for a pipe that nobody reads would stop it."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path

    def ended(self) -> Done:
        """Wait for it."""
        code = self.process.wait(timeout=WITHIN_S)
        return Done(code, self.out.read_text(), self.err.read_text())


class StubFleet:
    """The hosts, an inventory for them, and the folder in which commands run."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox, self.folder, self.commands = sandbox, folder, 0
        self.write()

    @property
    def hosts(self) -> tuple[SandboxHost, ...]:
        return self.sandbox.hosts()

    def host(self, name: str) -> SandboxHost:
        return self.sandbox.host(name)

    def write(self, *, ssh: Mapping[str, object] | None = None, **words: object) -> Path:
        """The inventory, with some of its words said otherwise."""
        told = {"config": str(self.sandbox.ssh_config), "connect_within_s": 10, **(ssh or {})}
        inventory = {
            "cluster": "stub",
            "stack": "stub",
            "hardware": "cpu",
            "model": "tiny",
            "layout": "stub-1p1d",
            "ssh": told,
            "paths": {"shared": "/gpfs", "local": "/nvme"},
            "interface": "eth0",
            "hosts": {host.name: {} for host in self.hosts},
            "pools": POOLS,
            **words,
        }
        path = self.folder / "stub.yaml"
        path.write_text(json.dumps(inventory, indent=1))  # JSON is YAML
        return path

    def start(self, *words: str, data: Path = DATA, **variables: str) -> Begun:
        """A command, begun."""
        environment = {**os.environ, "DSV32_INVENTORY": "stub.yaml", "DSV32_RUNS": "runs", **variables}
        placed = [*words, "--data-dir", str(data)] if words[0] != "runs" else words
        self.commands += 1
        told = [self.folder / f"{self.commands}.{stream}" for stream in ("out", "err")]
        with told[0].open("w") as out, told[1].open("w") as err:
            process = subprocess.Popen(
                [str(COMMAND), *placed],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        return Begun(process, told[0], told[1])

    def run(self, *words: str, data: Path = DATA, **variables: str) -> Done:
        """A command from its beginning to its end."""
        return self.start(*words, data=data, **variables).ended()

    def up(self, *words: str, data: Path = DATA, **variables: str) -> Done:
        """`up`, approved, told in JSON."""
        return self.run("up", "--yes", "--json", *words, data=data, **variables)

    def plan(self, *words: str, data: Path = DATA) -> Done:
        """`plan`, told in JSON."""
        return self.run("plan", "--json", *words, data=data)

    def bare(self) -> None:
        """Take away all that `up` has ever made."""
        for host in self.hosts:
            host.exec("sh", "-c", BARE)

    def serve(self) -> None:
        """Have everything up, as the usual inventory says."""
        self.write()
        done = self.up()
        assert done.code == 0, done.stdout + done.stderr

    def state(self) -> list[str]:
        """What serves, by an independent witness."""
        return [served_state(host) for host in self.hosts]

    @property
    def runs(self) -> list[Path]:
        """The folder of each run, oldest first."""
        runs = self.folder / "runs"
        return sorted(runs.iterdir(), key=lambda run: run.stat().st_mtime_ns) if runs.exists() else []

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        """What the newest run has written down so far, of some kinds or all."""
        path = self.runs[-1] / "events.jsonl" if self.runs else Path("/dev/null")
        lines = (json.loads(line) for line in path.read_text().splitlines()) if path.exists() else ()
        return [line for line in lines if not kinds or line["kind"] in kinds]

    def wait_for(self, kind: str, *, within_s: float = 120) -> None:
        """Wait until the newest run has written down an event of this kind."""
        until_s = time.monotonic() + within_s
        while not self.events(kind):
            assert time.monotonic() < until_s, f"no {kind}"
            time.sleep(0.05)


def publish_model(gpfs: Path) -> None:
    """Something to stage: two files and their manifest on the shared file system."""
    folder = gpfs / "models/tiny"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{}")
    header = json.dumps({"w": {"dtype": "U8", "shape": [1 << 20], "data_offsets": [0, 1 << 20]}}).encode()
    shard = len(header).to_bytes(8, "little") + header + bytes(range(256)) * 4096
    (folder / "model.safetensors").write_bytes(shard)
    subprocess.run(
        [str(COMMAND), "weights", "manifest", str(folder)], check=True, capture_output=True, timeout=WITHIN_S
    )
