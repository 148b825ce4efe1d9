"""RoutedTables: hosts as tables whose units serve; knows what engines, routers and fronts answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fake_clock import FakeClock
from table_fleet import Table, TableFleet, Unit, quiet

from launcher.load import load
from launcher.model.facts import Probe
from launcher.model.plan import Op
from launcher.model.wish import Wanted
from launcher.resolve import resolve
from launcher.rollout.run import Run
from launcher.rollout.traffic import switch

DATA = Path(__file__).with_name("data")
SEATS = {"h01": "prefill-0", "h02": "decode-0", "h03": "decode-1", "h04": "prefill-1"}
POOLS = {
    "prefill": {"hosts": ["h01", "h04"]},
    "decode": {"hosts": ["h02", "h03"]},
    "router": {"hosts": ["h04"]},
}
LOG = ("stub engine starts", "stub engine listens")
QUIET = Run("r0", quiet, lambda *_: "", lambda: False, "ana", "2026-11-29", flow="up", clock=FakeClock())


@dataclass
class ServingTable(Table):
    """One host: what answers at its ports is what systemd says runs."""

    instance: str = ""
    dumb: bool = False
    """Its engine answers with an error."""
    held: float = 0.0
    transfers: int = 0
    prompts: int = 0

    def answer(self, probe: Probe) -> Any:
        known: dict[str, Any] = {"http": self.http, "listen": lambda: [], "journal": self.journal}
        return known[probe.kind](*probe.args) if probe.kind in known else super().answer(probe)

    def unit(self, name: str) -> dict[str, Any]:
        return {**super().unit(name), "invocation": "i1"}

    def journal(self, unit: str, invocation: str, lines: int, after: str) -> dict[str, Any]:
        texts = LOG if after in ("", "start") else ()
        return {
            "entries": [{"time": 1.0, "message": t, "pid": 7, "priority": 6} for t in texts],
            "cursor": "c",
        }

    def http(self, method: str, url: str, body: str, headers: Any, within_s: float) -> dict[str, Any]:
        if not self.runs(f"dsv32-{self.instance}.service"):
            return {"error": "connection refused"}
        if method == "POST":
            return self.completion(json.loads(body))
        rows = {
            "vllm:num_requests_running": 0,
            "vllm:num_requests_waiting": 0,
            "vllm:kv_cache_usage_perc": self.held,
            "vllm:prompt_tokens_total": self.prompts,
            "vllm:nixl_xfer_time_seconds_count": self.transfers,
            "vllm:nixl_bytes_transferred_sum": self.transfers,
        }
        return {"status": 200, "body": "".join(f'{k}{{engine="0"}} {v}\n' for k, v in rows.items())}

    def completion(self, body: Mapping[str, Any]) -> dict[str, Any]:
        if self.dumb:
            return {"status": 500, "body": "out of luck"}
        self.prompts += 1
        self.transfers += 1
        told = {"choices": [{"text": "a"}], "usage": {"completion_tokens": 1}, "kv_transfer_params": {}}
        return {"status": 200, "body": json.dumps(told)}

    def runs(self, unit: str) -> bool:
        return unit in self.units and self.units[unit].active == "active"

    def do(self, op: Op) -> None:
        if op.verb == "order":
            self.units[op.args["unit"]].active = "active" if op.args["verb"] == "run" else "inactive"
        elif op.verb == "units":
            args = dict(op.args)
            args.pop("refresh", None)
            self.systemctl(**args)
        elif op.verb != "answer":
            super().do(op)


@dataclass
class RoutedTables(TableFleet):
    """All of it up."""

    told: list[tuple[str, str]] = field(default_factory=list)
    """(host, what was done there), of orders, restarts and lists of what is drained."""

    def do(self, host: str, ops: Any, **words: Any) -> Any:
        done = super().do(host, ops, **words)
        for op in ops[: done.failed_index]:
            if op.verb == "order":
                self.told.append((host, f"{op.args['verb']} {op.args['instance']}"))
            if op.verb == "units" and "restart" in op.args:
                self.told.append((host, f"restart {' '.join(op.args['restart'])}"))
            if op.args.get("path", "").endswith("drained.json"):
                self.told.append((host, f"drained {names(op.content)}"))
        return done


def names(content: bytes | None) -> str:
    return " ".join(d["instance"] for d in json.loads(content or b"[]"))


def routed_wanted(folder: Path, **words: Any) -> Wanted:
    """Two prefill and two decode stubs of one host each behind the routers of h04."""
    told: dict[str, Any] = {
        "cluster": "stub",
        "stack": "stub-routed",
        "hardware": "cpu",
        "model": "tiny",
        "layout": "stub-routed",
        "paths": {"shared": "/gpfs", "local": "/nvme"},
        "interface": "eth0",
        "hosts": {f"h0{n}": {"address": f"10.77.0.1{n}"} for n in range(1, 5)},
        "pools": POOLS,
        **words,
    }
    path = folder / "stub.yaml"
    path.write_text(json.dumps(told))
    return resolve(load(path, data_dir=DATA, environment={}))


def routed_tables(wanted: Wanted) -> RoutedTables:
    """Hosts where all of it runs, as wanted."""
    fleet = RoutedTables({host: ServingTable(instance=SEATS[host]) for host in wanted.steps})
    for host, table in fleet.tables.items():
        for unit in (f"dsv32-{SEATS[host]}.service", "dsv32-router-a.service", "dsv32-router-b.service"):
            if "router" not in unit or host == "h04":
                table.units[unit] = Unit("active", "enabled")
        table.units["dsv32-front.service"] = Unit("active", "enabled")
    switch(fleet, wanted, QUIET)
    fleet.log.clear()
    fleet.told.clear()
    return fleet
