"""A layout by itself → what must be true if it had just the hosts it needs; for commands that ask no host."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from launcher.load.choice import Choice
from launcher.load.collect import Collector
from launcher.load.data import Data
from launcher.load.model_config import read_model_config
from launcher.load.profile import read_profile, read_stack
from launcher.load.rules import profile_problems
from launcher.model.inventory import Host, Inventory, Paths, Pool, PoolName, SshSettings
from launcher.model.profile import Layout
from launcher.model.wish import Wanted, Wish
from launcher.resolve.deploy import deploy

PATHS = Paths(shared="/shared", local="/local")


@dataclass(frozen=True, slots=True)
class Names:
    """Files of configs/, and the options that chose them."""

    layout: str
    stack: str
    hardware: str
    model: str
    config: Path | None = None
    """A config.json whose dimensions count instead of the model's own."""


def wanted_of_layout(names: Names, data: Data) -> Wanted:
    """One instance of each pool, on hosts that are made up. InputError with all Problems of the files."""
    problems = Collector()
    chosen = {
        "layout": Choice(names.layout, "--layout"),
        "hardware": Choice(names.hardware, "--hardware"),
        "model": Choice(names.model, "--model"),
    }
    stack, more = read_stack(Choice(names.stack, "--stack"), data, problems)
    problems.raise_any()
    assert stack is not None
    profile = read_profile({**chosen, **more}, stack, data, problems)
    problems.keep(profile_problems(profile))
    problems.raise_any()
    layout, model = profile.layout, profile.model
    assert layout is not None
    assert model is not None
    if names.config is not None:
        model = replace(model, architecture=read_model_config(names.config, data))
    profile = replace(profile, model=model)
    wish = Wish(_inventory(names, layout), profile, roles=(), data_digest=data.digest)
    return Wanted(wish, deploy(wish), steps={})


def _inventory(names: Names, layout: Layout) -> Inventory:
    pools: dict[PoolName, Pool] = {}
    for name, part in layout.engines.items():
        hosts = tuple(f"{name}-host-{index}" for index in range(part.hosts_per_instance))
        pools[name] = Pool(name, hosts, instances=1, minimum=1, source=part.source)
    if layout.router is not None:
        pools["router"] = Pool(
            "router", ("router-host",), instances=1, minimum=1, source=layout.router.source
        )
    members = [host for pool in pools.values() for host in pool.hosts]
    return Inventory(
        cluster="alone",
        stack=names.stack,
        hosts={m: Host(m, f"10.0.0.{i}", "eth0", layout.source) for i, m in enumerate(members, start=1)},
        ssh=SshSettings(),
        paths=PATHS,
        layout=names.layout,
        hardware=names.hardware,
        model=names.model,
        pools=pools,
        path=layout.source.rpartition(":")[0],
    )
