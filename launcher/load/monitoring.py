"""configs/alerts.yaml and configs/dashboards → Monitoring, with every mistake in them; knows no PromQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from launcher.load.choice import Choice
from launcher.load.collect import Collector
from launcher.load.data import Data
from launcher.load.schema import filled, near
from launcher.load.sla import read_sla
from launcher.model.inventory import MonitoringSettings
from launcher.model.monitoring import Alert, Dashboard, Monitoring, Threshold
from launcher.model.problem import InputError, Problem
from launcher.model.profile import place_of

ALERTS = "configs/alerts.yaml"
DASHBOARDS = "configs/dashboards"
LIMIT = re.compile(r"\$([a-z]\w*)")
"""A limit in the `when` of an alert; `$1` is PromQL's own."""


@dataclass(frozen=True, slots=True)
class AlertsFile:
    """configs/alerts.yaml, as written."""

    limits: Mapping[str, Threshold]
    alerts: Mapping[str, Alert]


def read_monitoring(data: Data, sla: Choice) -> Monitoring:
    """Everything that is watched. InputError with the Problems of all its files."""
    problems = Collector()
    path = data.find(ALERTS)
    if path is None:
        raise InputError(Problem("no such file", where=ALERTS, do="give --data-dir a whole configs/"))
    document = data.document(path)
    file = problems.attempt(lambda: filled(AlertsFile, document))
    boards = {
        name: problems.attempt(partial(_dashboard, name, data))
        for name in data.names(DASHBOARDS, holding=".yaml")
    }
    level = problems.attempt(lambda: read_sla(sla, data))
    if file is not None:
        problems.keep(_limit_problems(file))
    problems.raise_any()
    assert file is not None
    assert level is not None
    return Monitoring(
        limits=file.limits,
        alerts=file.alerts,
        dashboards={name: board for name, board in boards.items() if board is not None},
        sla={
            name: limit.at_most
            for name, limit in level.limits.items()
            if limit.at_most is not None and limit.of == "mean"
        },
    )


def settings_problems(
    settings: MonitoringSettings, monitoring: Monitoring | None, hosts: Mapping[str, object]
) -> Iterator[Problem]:
    """What an inventory's `monitoring` names and there is not."""
    where = place_of(settings, "host")
    ports = {f"{name}_port" for name in settings.exporter_ports}
    if settings.places.keys() - ports and not settings.host:  # others may run exporters
        yield Problem("monitoring has no host", where=where, do="add `host:`, or remove `monitoring`")
    if settings.host and settings.host not in hosts:
        yield Problem(f"unknown host `{settings.host}` in monitoring", where, do=near(settings.host, hosts))
    if monitoring is None:
        return
    pairs = (("limits", settings.limits, monitoring.limits), ("for_s", settings.for_s, monitoring.alerts))
    for word, named, known in pairs:
        for name in named:
            if name not in known:
                what = f"unknown {'limit' if word == 'limits' else 'alert'} `{name}` in monitoring.{word}"
                yield Problem(what, where=place_of(settings, word), do=near(name, known))


def _dashboard(name: str, data: Data) -> Dashboard:
    path = data.find(f"{DASHBOARDS}/{name}.yaml")
    assert path is not None, "names() lists what find() finds"
    document = data.document(path)
    return filled(Dashboard, document, id=name)


def _limit_problems(file: AlertsFile) -> Iterator[Problem]:
    for name, limit in file.limits.items():
        if (limit.value is None) == (limit.sla is None):
            what = f"limit {name} has {'none' if limit.value is None else 'both'} of `value` and `sla`"
            yield Problem(what, where=limit.source, do="say one of them")
    for alert in file.alerts.values():
        for name in LIMIT.findall(alert.when):
            if name not in file.limits:
                yield Problem(f"`${name}` is no limit", where=alert.source, do=near(name, file.limits))
