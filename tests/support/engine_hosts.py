"""Three hosts with inventories/sandbox-dp2.yaml on them, for the layers that need a real engine.

Nothing here asks the launcher about the service: what tests want to know, they ask hosts and engines.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from launcher.model.problem import LauncherError
from launcher.sandbox import Sandbox, SandboxHost
from launcher.sandbox.base import require_machine

ROOT = Path(__file__).parents[2]
USUAL = Path(os.environ.get("DSV32_SANDBOX_DIR", "/var/tmp/dsv32-sandbox"))
"""The sandbox that `dsv32-launch sandbox stock` fills."""
PREFILL, LEADER, PEER = "h01", "h02", "h03"
API_PORT, FRONT_PORT = 8000, 8080
WITHIN_S = 900
"""For any one command; an instance that starts on two loaded cores has taken 330 s."""


@dataclass(frozen=True)
class Line:
    """One line of `--json` output, and when it was read."""

    time_s: float
    value: dict[str, Any]


@dataclass(frozen=True)
class Ran:
    """A command of ours that has ended."""

    exit: int
    lines: tuple[Line, ...]
    stderr: str

    def of(self, kind: str) -> list[dict[str, Any]]:
        """All lines of a type."""
        return [line.value for line in self.lines if line.value["type"] == kind]


@dataclass(frozen=True)
class Service:
    """The hosts, and a folder with the inventory in it where commands are given."""

    sandbox: Sandbox
    folder: Path

    def host(self, name: str) -> SandboxHost:
        return self.sandbox.host(name)

    def launch(self, command: str, *words: str, settings: str = "") -> Ran:
        """Run a command to its end; `settings` is YAML for another inventory that differs in these alone."""
        with (self.folder / "stderr").open("w+") as errors:
            program = self.begin(errors, command, *words, settings=settings)
            assert program.stdout
            lines = tuple(Line(time.time(), json.loads(line)) for line in program.stdout)
            code = program.wait(WITHIN_S)
            errors.seek(0)
            return Ran(code, lines, errors.read())

    def killed(self, when: str, command: str, *words: str) -> None:
        """Run a command, and end it with SIGKILL when it has told of a job that says `when`."""
        program = self.begin(subprocess.DEVNULL, command, *words)
        assert program.stdout
        assert any(json.loads(line).get("text") == when for line in program.stdout), "it ended before"
        program.kill()
        program.wait(WITHIN_S)

    def begin(
        self, errors: IO[str] | int, command: str, *words: str, settings: str = ""
    ) -> subprocess.Popen[str]:
        """A command that runs, with `--json`."""
        inventory = self.folder / ("changed.yaml" if settings else "service.yaml")
        text = (ROOT / "inventories/sandbox-dp2.yaml").read_text()
        text = text.replace("/var/tmp/dsv32-sandbox/ssh_config", str(self.sandbox.ssh_config))
        inventory.write_text(f"{text}settings: {settings}\n" if settings else text)
        if command == "logs":
            words = (*words, "--inventory", inventory.name)
        elif command == "bench":
            words = (words[0], inventory.name, *words[1:])
        else:
            words = (inventory.name, *words)
        argv = [sys.executable, "-m", "launcher.cli.main", command, *words, "--json"]
        return subprocess.Popen(argv, cwd=self.folder, stdout=subprocess.PIPE, stderr=errors, text=True)

    def up(self, *, settings: str = "") -> Ran:
        return self.launch("up", "--yes", settings=settings)

    def show(self, host: str, unit: str, *names: str) -> dict[str, str]:
        """Properties of a unit, from the host's systemd; times are epoch seconds."""
        words = ["systemctl", "show", "--timestamp=unix", *(f"--property={n}" for n in names), unit]
        told = self.host(host).exec(*words).stdout
        return dict(line.split("=", 1) for line in told.splitlines())

    def metrics(self, host: str) -> dict[str, float]:
        """Each sample of the engine's own /metrics, `name{source}`, summed over the other labels."""
        found: dict[str, float] = {}
        for family in text_string_to_metric_families(self.fetch(host, "/metrics")):
            for sample in family.samples:
                key = sample.name + (f"{{{sample.labels['source']}}}" if "source" in sample.labels else "")
                found[key] = found.get(key, 0.0) + sample.value
        return found

    def fetch(self, host: str, path: str) -> str:
        url = f"http://{self.host(host).address}:{API_PORT}{path}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            text: str = answer.read().decode()
            return text

    def complete(self, host: str, port: int, prompt: str, *, max_tokens: int = 8) -> dict[str, Any]:
        """One greedy completion."""
        url = f"http://{self.host(host).address}:{port}/v1/completions"
        body = {"model": "tiny", "prompt": prompt, "max_tokens": max_tokens, "temperature": 0}
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=300) as answer:
            told: dict[str, Any] = json.load(answer)
            return told


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Three bare hosts of a sandbox of their own; `/gpfs` is that of the usual one."""
    try:
        require_machine()
    except LauncherError as error:
        pytest.skip(f"no sandbox on this machine: {error}")
    wanted = [USUAL / "gpfs/stacks/sandbox-cpu/stack.json", USUAL / "gpfs/models/tiny/manifest.blocks.json"]
    if missing := [str(path) for path in wanted if not path.exists()]:
        pytest.skip(f"no {missing[0]}: run `dsv32-launch sandbox stock`")
    name = os.environ.get("DSV32_TEST_ENGINES_NAME", "dse")
    directory = Path(f"/var/tmp/dsv32-sandbox-{name}")
    with Path(f"{directory}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        base = Path(os.environ.get("DSV32_SANDBOX_BASE", USUAL / "base"))
        sandbox = Sandbox(directory, name=name, base=base)
        sandbox.down(purge=True)
        directory.mkdir()
        (directory / "gpfs").symlink_to(USUAL / "gpfs")
        try:
            sandbox.up(3)
            yield Service(sandbox, tmp_path_factory.mktemp("service"))
        finally:
            sandbox.down(purge=True)


@pytest.fixture(scope="session")
def first_up(service: Service) -> Ran:
    """What `up` did with bare hosts."""
    return service.up()
