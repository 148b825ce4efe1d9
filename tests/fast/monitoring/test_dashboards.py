"""configs/dashboards: what each query names is really exposed, and all of it is shown as it should be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from promql import metrics_in

from launcher.load.bench import read_telemetry
from launcher.load.choice import Choice
from launcher.load.data import Data, shipped
from launcher.load.monitoring import read_monitoring
from launcher.model.monitoring import Dashboard, Panel
from launcher.resolve.monitoring import grafana

DATA = Data((shipped(),))
WATCHED = read_monitoring(DATA, Choice("article", "here"))
SCRAPES = Path(__file__).with_name("scrapes")
PANELS = [
    (f"{name}: {row}: {panel.title}", panel)
    for name, board in WATCHED.dashboards.items()
    for row, panels in board.rows.items()
    for panel in panels
]
OWN = {"up", "ALERTS"}
"""Prometheus's own."""
COUNTERS = shipped() / "roles/dcgm-exporter/files/gpu-counters.csv"
ASKED_FOR = {"service", "requests", "ranks", "gpus", "links"}


def scraped(name: str) -> set[str]:
    """The series that a real scrape has."""
    families = text_string_to_metric_families((SCRAPES / name).read_text())
    return {sample.name for family in families for sample in family.samples}


def listed(path: Path) -> set[str]:
    """The first word of each line."""
    rows = (line.split(",")[0].strip() for line in path.read_text().splitlines())
    return {row for row in rows if row and not row.startswith("#")}


EXPOSED = (
    OWN
    | {series for path in SCRAPES.glob("*.prom") for series in scraped(path.name)}
    | listed(COUNTERS)
    | listed(SCRAPES / "infiniband.txt")
    | listed(SCRAPES / "mtp.txt")
)
NEEDING = {
    "gpu": listed(COUNTERS),
    "nic": listed(SCRAPES / "infiniband.txt"),
    "mtp": listed(SCRAPES / "mtp.txt"),
}


def test_what_is_asked_for_is_there() -> None:
    assert WATCHED.dashboards.keys() == ASKED_FOR
    titles = [title for title, _ in PANELS]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize(("title", "panel"), PANELS, ids=[title for title, _ in PANELS])
def test_it_names_what_is_exposed(title: str, panel: Panel) -> None:
    names = {name for query in panel.queries.values() for name in metrics_in(query)}
    assert names
    assert names <= EXPOSED, names - EXPOSED
    need = {word for word, of in NEEDING.items() if names & of}
    assert need == ({panel.needs} if panel.needs else set()), "says what it needs, and no more"


def test_alerts_name_what_is_exposed() -> None:
    named = {name: metrics_in(alert.when) - EXPOSED for name, alert in WATCHED.alerts.items()}
    assert {name: unknown for name, unknown in named.items() if unknown} == {}


def test_gpus_are_asked_for_what_somebody_looks_at_and_for_no_more() -> None:
    """A benchmark asks the same exporter: what its list does not have is told as not measured."""
    queries = [query for _, panel in PANELS for query in panel.queries.values()]
    used = {n for text in (*queries, *(a.when for a in WATCHED.alerts.values())) for n in metrics_in(text)}
    used |= {series.metric for series in read_telemetry(DATA).exporters["gpu"].series.values()}
    assert listed(COUNTERS) == {name for name in used if name.startswith("DCGM_")}


def test_a_benchmark_asks_the_node_exporter_for_what_is_exposed() -> None:
    asked = {series.metric for series in read_telemetry(DATA).exporters["host"].series.values()}
    assert asked <= EXPOSED


def test_the_counters_are_of_dcgm() -> None:
    """NVIDIA's own lists: https://github.com/NVIDIA/dcgm-exporter, etc/*.csv of 2025."""
    assert listed(COUNTERS) <= listed(SCRAPES / "dcgm-fields.txt")
    rows = [line for line in COUNTERS.read_text().splitlines() if not line.startswith("#")]
    assert {len(row.split(",")) for row in rows} == {3}, "or the exporter refuses the file"


@pytest.mark.parametrize("board", WATCHED.dashboards.values(), ids=WATCHED.dashboards)
def test_grafana_gets_panels_side_by_side(board: Dashboard) -> None:
    """No two on the same spot, each with its text, and the same each time."""
    assert grafana(board) == grafana(board)
    panels = json.loads(grafana(board))["panels"]
    spots = [
        (p["gridPos"]["x"] + x, p["gridPos"]["y"] + y)
        for p in panels
        for x in range(p["gridPos"]["w"])
        for y in range(p["gridPos"]["h"])
    ]
    assert len(spots) == len(set(spots))
    assert [p["id"] for p in panels] == list(range(1, len(panels) + 1))
    graphs = [p for p in panels if p["type"] == "timeseries"]
    assert len(graphs) == sum(len(row) for row in board.rows.values())
    for graph in graphs:
        assert all((graph["title"], graph["description"], graph["fieldConfig"]["defaults"]["unit"]))
        assert {t["expr"] for t in graph["targets"]}
