"""Monitoring × inventory → rules for Prometheus, dashboards as Grafana reads them; knows no host."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from launcher.model.inventory import MonitoringSettings
from launcher.model.monitoring import Alert, Dashboard, Monitoring, Panel

WIDTH, HEIGHT = 12, 8
"""Of a panel, in Grafana's units; a dashboard is 24 wide."""
LIMIT = re.compile(r"\$([a-z]\w*)")
"""A limit in the `when` of an alert; `$1` is PromQL's own."""
SOURCE = {"type": "prometheus", "uid": "dsv32"}
"""The data source of roles/grafana-files."""


@dataclass(frozen=True, slots=True)
class Rule:
    """An alert with all limits filled in."""

    id: str
    expr: str
    for_s: int
    severity: str
    summary: str
    runbook: str
    do: str
    """What to type; the label's value is filled in by Prometheus."""


def rules(monitoring: Monitoring, settings: MonitoringSettings) -> Iterator[Rule]:
    """Every alert whose limits are known: a service level without a limit has no alert for it."""
    limits = {name: f"{value:g}" for name, value in limits_of(monitoring, settings).items()}
    for name, alert in monitoring.alerts.items():
        if set(LIMIT.findall(alert.when)) <= limits.keys():
            yield Rule(
                id=name,
                expr=" ".join(LIMIT.sub(lambda found: limits[found[1]], alert.when).split()),
                for_s=settings.for_s.get(name, alert.for_s),
                severity=alert.severity,
                summary=alert.summary,
                runbook=alert.runbook,
                do=command(alert),
            )


def limits_of(monitoring: Monitoring, settings: MonitoringSettings) -> dict[str, float]:
    """Limit → its number: the inventory's own, else the service level's, else what is shipped."""
    found: dict[str, float] = {}
    for name, limit in monitoring.limits.items():
        if name in settings.limits:
            found[name] = settings.limits[name]
        elif limit.value is not None:
            found[name] = limit.value
        elif limit.sla and limit.sla in monitoring.sla:
            found[name] = monitoring.sla[limit.sla] / (1000 if limit.sla.endswith("_ms") else 1)
    return found


def command(alert: Alert) -> str:
    """What somebody types who is told of it."""
    words = f"dsv32-launch runbook run {alert.runbook}"
    return words if alert.of == "fleet" else f"{words} {{{{ $labels.{alert.of} }}}}"


def grafana(board: Dashboard) -> str:
    """A dashboard as Grafana's JSON."""
    panels: list[dict[str, object]] = []
    top = 0
    for heading, row in board.rows.items():
        place = {"x": 0, "y": top, "w": 24, "h": 1}
        panels.append(
            {"id": len(panels) + 1, "type": "row", "title": heading, "gridPos": place, "panels": []}
        )
        top += 1
        for index, panel in enumerate(row):
            place = {"x": WIDTH * (index % 2), "y": top + HEIGHT * (index // 2), "w": WIDTH, "h": HEIGHT}
            panels.append({"id": len(panels) + 1, "gridPos": place, **_panel(panel)})
        top += HEIGHT * ((len(row) + 1) // 2)
    whole = {
        "uid": f"dsv32-{board.id}",
        "title": board.title,
        "description": board.about,
        "tags": ["dsv32"],
        "schemaVersion": 37,
        "editable": False,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "panels": panels,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _panel(panel: Panel) -> dict[str, object]:
    targets = [
        {
            "refId": chr(ord("A") + index),
            "expr": " ".join(query.split()),
            "legendFormat": legend,
            "datasource": SOURCE,
        }
        for index, (legend, query) in enumerate(panel.queries.items())
    ]
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    }
