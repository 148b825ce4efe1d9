"""Watched: hosts as tables whose service moves; knows whom users reach at each moment, and what runs."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from routed_tables import DATA, SEATS, RoutedTables, ServingTable
from table_fleet import UNITS, recorded

from launcher.load import load
from launcher.model.plan import Op
from launcher.model.wish import Wanted
from launcher.resolve import resolve

PARTS = ("unit", "file", "folder", "turns")
"""Kinds that tables know; the others have their own tests."""


@dataclass
class MovingTable(ServingTable):
    """A host that also knows which text a unit was started with, and which it cannot start."""

    started: dict[str, str] = field(default_factory=dict)
    refuses: str = ""
    """Engines whose text holds this end as soon as they have started."""

    def do(self, op: Op) -> None:
        super().do(op)
        if op.verb == "order" and op.args["verb"] == "run":
            self.begin(op.args["unit"])
        for name in (*op.args.get("start", ()), *op.args.get("restart", ())):
            self.begin(name)

    def begin(self, name: str) -> None:
        text = self.paths[UNITS + name].content.decode()
        self.started[name] = text
        self.units[name].release, self.units[name].note = recorded(text)
        if self.refuses and self.refuses in text and name == f"dsv32-{self.instance}.service":
            self.units[name].active = "failed"


@dataclass
class Watched(RoutedTables):
    """Notes, after each request that does something, whom users reach."""

    watching: bool = False
    seen: list[dict[str, set[str]]] = field(default_factory=list)

    def do(self, host: str, ops: Any, **words: Any) -> Any:
        done = super().do(host, ops, **words)
        if self.watching:
            self.seen.append(self.reached())
        return done

    def reached(self) -> dict[str, set[str]]:
        """Instance → what it must have alike with its peers, its environment and what NIXL hashes, of those
        that run and that the router which users reach asks."""
        front: Any = self.tables["h04"]
        slot = front.paths["/etc/dsv32/routers.cfg"].content.decode().splitlines()[0].split()[-1]
        asked = re.findall(r"http://10\.77\.0\.1(\d):8000", front.started[f"dsv32-router-{slot}.service"])
        found: dict[str, set[str]] = {}
        for host in (f"h0{number}" for number in asked):
            table: Any = self.tables[host]
            unit = f"dsv32-{SEATS[host]}.service"
            if table.runs(unit):
                alike = re.findall(r"/environments/([\w-]+)/bin/stub|--dtype (\w+)", table.started[unit])
                found[SEATS[host]] = {environment or dtype for environment, dtype in alike}
        return found

    def environments(self) -> set[str]:
        return {word for alike in self.reached().values() for word in alike if word.startswith("stub-")}

    def always_served(self) -> bool:
        """At every moment users reached an instance of each pool, and all had alike what they must."""
        pools = [{name.partition("-")[0] for name in moment} for moment in self.seen]
        return all(p == {"prefill", "decode"} for p in pools) and all(
            len({frozenset(alike) for alike in moment.values()}) == 1 for moment in self.seen
        )


def known(wanted: Wanted) -> Wanted:
    """As far as tables know it."""
    steps = {
        host: tuple(s for s in own if s.kind in PARTS and s.role != "logs")
        for host, own in wanted.steps.items()
    }
    return replace(wanted, steps=steps)


def next_of(folder: Path) -> Wanted:
    """The same with another version of the engine, in an environment of its own."""
    data = folder / "data"
    shutil.copytree(DATA, data)
    stacks = data / "configs/stacks"
    text = (stacks / "stub-routed.yaml").read_text()
    (stacks / "stub-next.yaml").write_text(text.replace('engine_version: "1.0"', 'engine_version: "1.1"'))
    path = folder / "stub.yaml"
    text = path.read_text().replace("stub-routed", "stub-next", 1)
    return known(resolve(load(path, data_dir=data, environment={}, text=text)))
