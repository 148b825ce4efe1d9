"""Idle: a drained instance until it has ended its requests, and nobody fetches KV from it any more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from launcher.execute.hands import Hands
from launcher.health.canary import bodies
from launcher.health.hands import look_within_s
from launcher.health.metrics import read
from launcher.health.state import api_urls, get
from launcher.model.deployment import Instance
from launcher.model.finding import Finding, Severity
from launcher.model.history import default_in
from launcher.model.problem import Problem
from launcher.model.run import Event
from launcher.model.wish import Wanted
from launcher.rollout.run import Run
from launcher.wait import wait_for

LOOK_EVERY_S = 1.0
LEASE = "kv-transfer-config.kv_connector_extra_config.kv_lease_duration"
TIMEOUT = "VLLM_NIXL_ABORT_REQUEST_TIMEOUT"


@dataclass(frozen=True, slots=True)
class Load:
    """What an instance still has to do."""

    running: float
    waiting: float
    kv_usage: float
    """The largest share of KV that a rank holds, 0 to 1."""

    def __str__(self) -> str:
        return f"{self.running:.0f} running, {self.waiting:.0f} waiting, KV use {self.kv_usage:.1%}"


def await_idle(fleet: Hands, wanted: Wanted, instance: Instance, run: Run, *, within_s: float) -> Finding:
    """Wait until the instance has no request and, of prefill, no KV that decode may still fetch; then what is
    left, if the time is over."""
    lease_s = kept_s(wanted, instance) if instance.pool == "prefill" else 0.0
    quiet_s: float | None = None
    """Since when it has no request."""

    def look() -> tuple[Load | None, bool]:
        """What it still has to do, and whether that is nothing."""
        nonlocal quiet_s
        now, now_s = load_of(fleet, wanted, instance), run.clock.now_s()
        if now is None:
            return now, True
        if now.running + now.waiting:
            quiet_s = None
            return now, False
        quiet_s = now_s if quiet_s is None else quiet_s
        return now, now.kv_usage == 0 or now_s - quiet_s >= lease_s

    waited = wait_for(
        look,
        lambda seen: seen[1],
        every_s=LOOK_EVERY_S,
        within_s=within_s,
        interrupted=run.interrupted,
        on_change=lambda seen: run.listener(
            Event("phase", f"{instance.name}: {seen[0]}", subject=instance.name)
        ),
        clock=run.clock,
    )
    now, _ = waited.answer
    if now is None:
        return Finding(Severity.OK, instance.name, "drained; it does not answer, so nothing is waited for")
    if not waited.satisfied:
        return _left(instance, now, waited.took_s)
    held = f"KV leases of {lease_s:.0f} s are over" if now.kv_usage else "no KV is held"
    return Finding(Severity.OK, instance.name, f"drained: no request runs or waits, {held}")


def _left(instance: Instance, now: Load, waited_s: float) -> Finding:
    what = f"{instance.name} gets no new requests and is not idle after {waited_s:.0f} s: {now}"
    do = f"dsv32-launch drain {instance.name} waits on"
    return Finding(Severity.ERROR, instance.name, what, Problem(what, instance.name, do=do))


def load_of(fleet: Hands, wanted: Wanted, instance: Instance) -> Load | None:
    """By the metrics of all its endpoints; None where none of them answers."""
    engine = wanted.wish.profile.engine
    assert engine, "what serves has an engine"
    pages = {p.host: tuple(get(url + "/metrics") for url in api_urls(p)) for p in instance.processes}
    facts = fleet.ask({host: asked for host, asked in pages.items() if asked}, within_s=look_within_s)
    readings = [read(t, engine.metrics) for h in facts for t in bodies(facts[h], pages[h])]
    if not readings:
        return None
    usage = [value for r in readings for value in r.ranks("kv_usage").values()]
    running, waiting = (sum(r.total(word) for r in readings) for word in ("running", "waiting"))
    return Load(running, waiting, max(usage, default=0.0))


def kept_s(wanted: Wanted, instance: Instance) -> float:
    """Seconds after which prefill gives up KV that nobody has fetched: as set, else the release's default."""
    process, profile = instance.processes[0], wanted.wish.profile
    text = next((a.value for a in process.arguments if a.flag == "--kv-transfer-config"), None)
    told: Mapping[str, Any] = json.loads(text or "{}").get("kv_connector_extra_config", {})
    if "kv_lease_duration" in told:
        return float(told["kv_lease_duration"])
    if TIMEOUT in process.environment:
        return float(str(process.environment[TIMEOUT].value))
    version, history = profile.stack.engine_version, profile.history
    entries = (history.settings.get(LEASE), history.variables.get(TIMEOUT))
    defaults = (default_in(entry, version) for entry in entries if entry)
    return float(next((d for d in defaults if d), "0"))
