"""A fleet whose engines are `sleep`: every kind of step but `package`, small enough for real hosts in a test.

As a program it is a controller that a test can kill: `marker_fleet.py JSON`, see `Controller`.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from launcher.execute import Outcome, apply
from launcher.model.deployment import Deployment, Instance, Process
from launcher.model.inventory import Host, Inventory, Paths, Pool, SshSettings
from launcher.model.plan import Op, Plan
from launcher.model.profile import Profile, Stack
from launcher.model.role import Stage, Step
from launcher.model.run import Event, Listener
from launcher.model.wish import Wanted, Wish
from launcher.remote.fleet import DoResult, Fleet
from launcher.rollout.planning import plan
from launcher.steps import absent, command, file, folder, link, sysctl, unit, user, venv, weights

SPANS = {"prefill-0": ("h01",), "decode-0": ("h02", "h03")}
BUILDER = """#!/bin/sh
set -e
echo build >>/var/lib/marker-builds
echo '{"text": "building", "done": 1, "total": 2}' >"$DSV32_PROGRESS"
sleep SECONDS
mkdir -p "$1"
echo "$5" >"$1/.complete"
"""
COPIER = """#!/bin/sh
set -e
mkdir -p "$1"
cp "$2"/*.bin "$1/"
sha256sum <"$3" | cut -d' ' -f1 >"$1/.complete"
"""
ENGINE = "[Unit]\nDescription=engine RELEASE\n[Service]\nType=exec\nExecStart=/bin/sleep infinity\n"


@dataclass(frozen=True)
class Shape:
    """What varies: plain values, so that a child process can be told them."""

    ssh_config: str
    addresses: Mapping[str, str]
    """Of the hosts that are used."""
    release: str = "1"
    build_s: str = "0.1"


def publish_weights(gpfs: Path) -> None:
    """A model of two files on the shared file system."""
    model = gpfs / "models/marker"
    model.mkdir(parents=True, exist_ok=True)
    files = {"a.bin": b"a" * 1000, "b.bin": b"b" * 2000}
    for name, content in files.items():
        (model / name).write_bytes(content)
    entries = {n: {"size": len(c), "sha256": hashlib.sha256(c).hexdigest()} for n, c in files.items()}
    (model / "manifest.json").write_text(json.dumps({"files": entries}))


def wanted_on(shape: Shape) -> Wanted:
    """The wish for these hosts."""
    hosts = {n: Host(n, a, "eth0", "marker.yaml:1") for n, a in shape.addresses.items()}
    spans = {name: span for name, span in SPANS.items() if set(span) <= set(hosts)}
    inventory = Inventory(
        cluster="marker",
        stack="s",
        hosts=hosts,
        ssh=SshSettings(config=shape.ssh_config),
        paths=Paths("/gpfs", "/nvme"),
        pools={"decode": Pool("decode", SPANS["decode-0"], 1, 1, "marker.yaml:2")},
        path="marker.yaml",
    )
    instances = tuple(Instance(n, _pool(n), "internal", _processes(n, span)) for n, span in spans.items())
    deployment = Deployment("marker", "/nvme/m", "m", "/nvme/e", inventory.paths, instances, ())
    wish = Wish(inventory, Profile(Stack("s", "", ())), (), data_digest="d")
    return Wanted(wish, deployment, {host: _steps(host, shape) for host in hosts})


def _pool(instance: str) -> Any:
    return instance.rpartition("-")[0]


def _processes(instance: str, span: Sequence[str]) -> tuple[Process, ...]:
    return tuple(
        Process(instance, n, host, f"dsv32-{instance}.service", (), n == 0, (), ("/bin/sleep",), (), {})
        for n, host in enumerate(span)
    )


def _steps(host: str, shape: Shape) -> tuple[Step, ...]:
    builder = BUILDER.replace("SECONDS", shape.build_s)
    wants: list[tuple[Stage, str, str, Any]] = [
        ("host", "folder", "folder", folder.Params("/etc/marker", mode="0750")),
        ("host", "file", "name", file.Params("/etc/marker/name", f"{host}\n", mode="0640")),
        ("host", "file", "key", file.Params("/etc/marker/key", "s3cr3t", mode="0600", secret=True)),
        ("host", "link", "link", link.Params("/etc/marker/also", "/etc/marker/name")),
        ("host", "absent", "old", absent.Params("/etc/marker/old")),
        ("host", "user", "user", user.Params("marker", shell="/usr/sbin/nologin", groups=("video",))),
        (
            "host",
            "sysctl",
            "maps",
            sysctl.Params("/etc/sysctl.d/90-marker.conf", "vm.max_map_count", "262144"),
        ),
        (
            "host",
            "command",
            "once",
            command.Params(("touch", "/etc/marker/once"), command.Unless("/etc/marker/once")),
        ),
        ("runtime", "file", "builder", file.Params("/usr/local/bin/marker-build", builder, mode="0755")),
        (
            "runtime",
            "venv",
            "env",
            venv.Params("/nvme/e", "python3", "/gpfs/lock", "feed", "/gpfs/w", "/usr/local/bin/marker-build"),
        ),
        ("weights", "file", "copier", file.Params("/usr/local/bin/marker-copy", COPIER, mode="0755")),
        (
            "weights",
            "weights",
            "model",
            weights.Params(
                "/nvme/m",
                "/gpfs/models/marker",
                "/gpfs/models/marker/manifest.json",
                "/usr/local/bin/marker-copy",
                "/usr/local/bin/marker-read",
            ),
        ),
    ]
    steps = [_step(host, *want) for want in wants]
    text = ENGINE.replace("RELEASE", shape.release)
    for name, span in SPANS.items():
        if host in span and set(span) <= set(shape.addresses):
            params = unit.Params(f"dsv32-{name}.service", text)
            steps.append(_step(host, "engine", "unit", f"unit[{name}]", params, name))
    if host == "h04":
        params = unit.Params(
            "dsv32-router.service", text + "[Install]\nWantedBy=multi-user.target\n", enabled=True
        )
        steps.append(_step(host, "router", "unit", "router", params))
    return tuple(steps)


def _step(host: str, stage: Stage, kind: str, name: str, want: Any, instance: str = "") -> Step:
    return Step(f"marker/{name}", "marker", stage, kind, host, want, instance, "roles/marker/role.yaml:1")


def fleet_for(wanted: Wanted) -> Fleet:
    """Connections to its hosts."""
    return Fleet(wanted.wish, runs_as="ana", run_id="r1")


def plan_for(wanted: Wanted) -> Plan:
    """What `plan` would show."""
    with fleet_for(wanted) as fleet:
        return plan(fleet, wanted)


def up(fleet: Any, wanted: Wanted, listener: Listener = lambda event: None) -> Outcome:
    """Lock, observe, plan, apply."""
    fleet.lock(wanted.steps)
    return apply(fleet, wanted, plan(fleet, wanted), listener, await_ready=lambda instance: None)


class OneByOne:
    """A fleet that sends each op by itself, and whose controller dies after so many of them."""

    def __init__(self, fleet: Fleet, *, ops: int) -> None:
        self.fleet, self.left, self.counting = fleet, ops, threading.Lock()
        self.ask, self.map, self.lock = fleet.ask, fleet.map, fleet.lock

    def do(
        self, host: str, ops: Iterable[Op], *, listener: Listener, within_s: float, subject: str
    ) -> DoResult:
        for op in ops:
            with self.counting:
                if self.left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                self.left -= 1
            result = self.fleet.do(host, [op], listener=listener, within_s=within_s, subject=subject)
            if not result.ok:
                return result
        return DoResult(host)


def die_at_first_job(event: Event) -> None:
    """A listener that kills its own controller while a job runs."""
    if event.kind == "job":
        os.kill(os.getpid(), signal.SIGKILL)


def main(text: str) -> None:
    """{"shape": ..., "ops": so many and then die, or -1, "die_at_job": bool}."""
    told = json.loads(text)
    wanted = wanted_on(Shape(**told["shape"]))
    listener: Callable[[Event], None] = die_at_first_job if told["die_at_job"] else lambda event: None
    with fleet_for(wanted) as fleet:
        hands = OneByOne(fleet, ops=told["ops"])
        outcome = up(hands, wanted, listener)
        print(json.dumps({"problems": [p.what for p in outcome.problems], "ops": told["ops"] - hands.left}))


def told(shape: Shape, *, ops: int = -1, die_at_job: bool = False) -> str:
    """The argument of the program."""
    return json.dumps({"shape": asdict(shape), "ops": ops, "die_at_job": die_at_job})


if __name__ == "__main__":
    main(sys.argv[1])
