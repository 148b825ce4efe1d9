"""A small Wanted: prefill-0 on h1, decode-0 over h2 and h3, decode-1 on h4, a router on h5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from launcher.model.deployment import Deployment, Instance, Process
from launcher.model.inventory import Host, Inventory, Paths, Pool, SshSettings
from launcher.model.profile import Profile, Stack
from launcher.model.role import Stage, Step
from launcher.model.wish import Wanted, Wish
from launcher.steps import file, folder, unit

SPANS = {"prefill-0": ("h1",), "decode-0": ("h2", "h3"), "decode-1": ("h4",)}
HOSTS = ("h1", "h2", "h3", "h4", "h5")
ENGINE = "[Unit]\nDescription=engine\n[Service]\nExecStart=/bin/engine --release 1\n"
ROUTER = "[Service]\nExecStart=/bin/router\n"


def step(host: str, name: str, kind: str, want: Any, *, stage: Stage = "host", instance: str = "") -> Step:
    return Step(
        id=name,
        role=name.partition("/")[0],
        stage=stage,
        kind=kind,
        host=host,
        want=want,
        instance=instance,
        source=f"roles/{name.partition('/')[0]}/role.yaml:7",
    )


def steps_of(host: str, *, engine: str = ENGINE) -> tuple[Step, ...]:
    found = [
        step(host, "base/folder", "folder", folder.Params("/etc/app")),
        step(host, "base/conf", "file", file.Params("/etc/app/app.conf", f"name={host}\n", mode="0640")),
        step(host, "env/conf", "file", file.Params("/etc/app/env.conf", "env\n"), stage="runtime"),
    ]
    for name, hosts in SPANS.items():
        if host in hosts:
            want = unit.Params(f"dsv32-{name}.service", engine)
            found.append(step(host, f"engine/unit[{name}]", "unit", want, stage="engine", instance=name))
    if host == "h5":
        want = unit.Params("dsv32-router.service", ROUTER, enabled=True)
        found.append(step(host, "router/unit", "unit", want, stage="router"))
    return tuple(found)


def process(instance: str, host: str, *, leads: bool) -> Process:
    return Process(
        instance=instance,
        index=0,
        host=host,
        unit=f"dsv32-{instance}.service",
        ranks=(),
        leads=leads,
        endpoints=(),
        command=("/bin/engine",),
        arguments=(),
        environment={},
    )


def wanted_of(
    steps: Mapping[str, tuple[Step, ...]] | None = None, *, engine: str = ENGINE, data: str = "d1"
) -> Wanted:
    steps = steps or {host: steps_of(host, engine=engine) for host in HOSTS}
    pools = {
        "prefill": Pool("prefill", ("h1",), 1, 1, "inventory.yaml:20"),
        "decode": Pool("decode", ("h2", "h3", "h4"), 2, 1, "inventory.yaml:21"),
        "router": Pool("router", ("h5",), 1, 1, "inventory.yaml:22"),
    }
    inventory = Inventory(
        cluster="small",
        stack="s",
        hosts={h: Host(h, f"10.0.0.{n}", "eth0", f"inventory.yaml:{n}") for n, h in enumerate(steps)},
        ssh=SshSettings(),
        paths=Paths("/gpfs", "/nvme"),
        pools=pools,  # type: ignore[arg-type]
        path="inventory.yaml",
    )
    deployment = Deployment(
        cluster="small",
        model_path="/nvme/m",
        served_name="m",
        environment_path="/nvme/e",
        paths=inventory.paths,
        instances=tuple(
            Instance(
                name,
                "prefill" if name.startswith("prefill") else "decode",
                "internal",
                tuple(process(name, h, leads=n == 0) for n, h in enumerate(hosts)),
            )
            for name, hosts in SPANS.items()
        ),
        routers=(),
    )
    wish = Wish(inventory, Profile(Stack("s", "", ())), (), data)
    return Wanted(wish, deployment, steps)
