"""Alert, Dashboard, Monitoring: what is watched, when somebody is told, what people see; knows no host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, MinLen

from launcher.model.runbook import Subject
from launcher.model.sla import LimitName

Series: TypeAlias = Mapping[str, str]
"""A series as PromQL writes it → its values a minute apart, in the notation of promtool's unit tests."""
Hardware: TypeAlias = Literal["", "gpu", "nic", "mtp"]
"""What a query needs to give data: GPUs with the DCGM exporter, InfiniBand or RoCE NICs, a model with MTP."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A limit of alerts: a number, or a limit of the service level; one of the two."""

    known_from: str
    """Where the number comes from; `assumed:` where nobody has published one."""
    value: float | None = None
    sla: LimitName | None = None
    """The service level's, as seconds where its name ends in `_ms`; alerts are left out where it has none."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing that somebody is told of."""

    severity: Literal["page", "ticket"]
    """page: users notice, or will within the hour; ticket: on the next working day."""
    for_s: Annotated[int, Ge(0)]
    """It holds for so long before it fires."""
    when: str
    """PromQL; `$name` is a limit."""
    summary: str
    """One sentence, in Prometheus's own template language."""
    runbook: str
    """In configs/runbooks/."""
    of: Subject
    """What its runbook is run for; the alert has a label of that name."""
    fires: Annotated[Series, MinLen(1)]
    """Series under which it fires."""
    quiet: Annotated[Series, MinLen(1)]
    """Series that look alike, under which it does not."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph of a dashboard."""

    title: str
    unit: str
    """Grafana's name of a unit: `s`, `percentunit`, `reqps`, `Bps`, `short`, `celsius`."""
    queries: Annotated[Mapping[str, str], MinLen(1)]
    """Legend, in which `{{label}}` stands for a label's value → PromQL."""
    about: str
    """What good looks like."""
    needs: Hardware = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Dashboard:
    """configs/dashboards/<id>.yaml: panels, two beside each other, under headings."""

    id: str
    title: str
    about: str
    rows: Annotated[Mapping[str, tuple[Panel, ...]], MinLen(1)]
    """Heading → its panels."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Monitoring:
    """Limits, alerts and dashboards, and the service level that limits may come from."""

    limits: Mapping[str, Threshold]
    alerts: Mapping[str, Alert]
    dashboards: Mapping[str, Dashboard]
    sla: Mapping[LimitName, float] = field(default_factory=dict)
    """What a mean must not exceed, for each limit of the service level that has one."""
