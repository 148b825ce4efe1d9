"""Real Prometheus, Alertmanager and node exporters around stub engines: targets, an alert, other pools."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from routed_fleet import POOLS, RoutedFleet
from witness import said

MONITORING = {"host": "h04", "every_s": 1, "for_s": {"engine-down": 1}}
WITHIN_S = 60


def asked(routed: RoutedFleet, port: int, path: str) -> Any:
    """The answer of an API on the monitoring host, by the host itself."""
    host = routed.host("h04")
    return json.loads(said(host, f"curl -sf http://{host.address}:{port}{path} || echo null"))


def targets(routed: RoutedFleet) -> Mapping[tuple[str, str, str], str]:
    """Job, instance or address, and host → health."""
    told = asked(routed, 9090, "/api/v1/targets?state=active") or {"data": {"activeTargets": []}}
    return {
        (t["labels"]["job"], t["labels"]["instance"], t["labels"]["host"]): t["health"]
        for t in told["data"]["activeTargets"]
    }


def wait_for(what: Callable[[], bool], why: str) -> None:
    """Wait until it is so."""
    until_s = time.monotonic() + WITHIN_S
    while not what():
        assert time.monotonic() < until_s, why
        time.sleep(0.5)


def monitored(routed: RoutedFleet, pools: Mapping[str, object] = POOLS) -> list[tuple[str, str, str]]:
    """Bring it up so; the changes that this took."""
    routed.inventory(pools=pools, monitoring=MONITORING)
    done = routed.up()
    assert done.code == 0, done.stdout + done.stderr
    assert routed.plan().changes == []
    return done.changes


def firing(routed: RoutedFleet) -> set[tuple[str, str]]:
    """Alert and instance, as Alertmanager was told of them."""
    told = asked(routed, 9093, "/api/v2/alerts?active=true") or []
    return {(a["labels"]["alertname"], a["labels"].get("instance", "")) for a in told}


def test_what_serves_is_watched_and_its_end_is_an_alert(routed: RoutedFleet) -> None:
    """One line of an inventory turns it on, another topology is taken without a restart, and off is off."""
    began_s = time.monotonic()
    changed = {step.partition("/")[0] for _, step, _ in monitored(routed)}
    print(f"up with monitoring: {time.monotonic() - began_s:.1f} s")
    assert changed == {"node-exporter", "prometheus", "alertmanager", "dashboards"}, "nothing that serves"

    wait_for(lambda: set(targets(routed).values()) == {"up"}, "a target is down")
    jobs = [job for job, _, _ in targets(routed)]
    counts = {job: jobs.count(job) for job in jobs}
    assert counts == {"engine": 4, "host": 4, "router": 2, "front": 1, "prometheus": 1}
    instances = {"prefill-0", "prefill-1", "decode-0", "decode-1"}
    wait_for(lambda: guards(routed) == instances, "a guard is silent")
    wait_for(lambda: not firing(routed), "all is well")
    what_watches_is_checked(routed)

    # its guard is halted first: an engine that is back within a second is no alert
    host = routed.host("h03")
    said(host, "systemctl kill -s STOP dsv32-guard-decode-1; systemctl stop dsv32-decode-1")
    began_s = time.monotonic()
    wait_for(lambda: ("engine-down", "decode-1") in firing(routed), "nobody is told")
    print(f"an engine is gone: Alertmanager knows after {time.monotonic() - began_s:.1f} s")
    said(host, "systemctl kill -s CONT dsv32-guard-decode-1")

    before = invocation(routed)
    monitored(routed, {**POOLS, "decode": {"hosts": ["h02", "h03"], "instances": 1}})
    wait_for(lambda: ("engine", "decode-1", "h03") not in targets(routed), "it is still looked for")
    assert invocation(routed) == before, "it has read its files again"

    routed.inventory()
    assert routed.up().code == 0
    assert "prometheus" not in said(routed.host("h04"), "ls /etc/systemd/system | grep dsv32")


def wrong(routed: RoutedFleet) -> dict[str, list[str]]:
    """Check of what watches → hosts where it does not hold."""
    told = routed.run("check", "--only", "monitoring", "--json").lines("check")
    return {t["id"]: t["hosts"] for t in told if t["verdict"] == "wrong"}


def what_watches_is_checked(routed: RoutedFleet) -> None:
    """Its end and a stranger on its port are told, and nothing while all is well."""
    assert wrong(routed) == {}
    host, monitor = routed.host("h02"), routed.host("h04")
    said(host, "systemctl stop dsv32-node-exporter; systemd-run --unit=stranger python3 -m http.server 9100")
    said(monitor, "systemctl kill -s STOP dsv32-alertmanager")
    wait_for(
        lambda: targets(routed).get(("host", f"{host.address}:9100", "h02")) == "down", "it is not missed"
    )
    try:
        assert wrong(routed) == {
            "exporter-ports": ["h02"],
            "host-exporter-runs": ["h02"],
            "prometheus-targets": ["h04"],
            "alertmanager-ready": ["h04"],
        }
    finally:
        said(monitor, "systemctl kill -s CONT dsv32-alertmanager")
        said(host, "systemctl stop stranger; systemctl start dsv32-node-exporter")
    wait_for(lambda: wrong(routed) == {}, "it is well again")


def invocation(routed: RoutedFleet) -> str:
    """systemd's id of Prometheus's present start."""
    return said(routed.host("h04"), "systemctl show --value -p InvocationID dsv32-prometheus")


def guards(routed: RoutedFleet) -> set[str]:
    """The instances whose guards' words are collected, and say that they are ready."""
    told = asked(routed, 9090, "/api/v1/query?query=dsv32_guard_ready==1") or {"data": {"result": []}}
    return {series["metric"]["instance"] for series in told["data"]["result"]}
