"""What a benchmark asks exporters on its hosts for, and what they told; knows no job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from launcher.health.metrics import samples
from launcher.model.bench import Target
from launcher.model.profile import Port
from launcher.model.telemetry import Exporter, ExporterName, Telemetry, Track

Look: TypeAlias = Sequence[Any]
"""Epoch seconds, and address → text, as `bench/client.py` has written it."""
Ports: TypeAlias = Mapping[ExporterName, Port]
"""Exporter → where it listens on each host."""
Values: TypeAlias = Mapping[tuple[str, str], float]
"""Our word for a metric, and a device → its value."""


def asked_of_exporters(target: Target, telemetry: Telemetry, ports: Ports) -> dict[str, Any]:
    """For the job's spec: addresses, names of metrics, and how often."""
    names = {m.metric for exporter in telemetry.exporters.values() for m in exporter.series.values()}
    return {
        "exporters": [url for _, _, url in _pages(target, telemetry, ports)],
        "series": sorted(names),
        "every_s": telemetry.every_s,
        "most_looks": telemetry.most_looks,
    }


def tracks_of(
    looks: Sequence[Look], target: Target, telemetry: Telemetry, ports: Ports
) -> tuple[tuple[Track, ...], tuple[str, ...]]:
    """Each metric of each device over the run; and which exporters told nothing, host by host."""
    tracks: list[Track] = []
    silent: dict[str, list[str]] = {}
    for host, name, url in _pages(target, telemetry, ports):
        exporter = telemetry.exporters[name]
        seen = [(float(when), _values(pages[url], exporter)) for when, pages in looks if url in pages]
        tracks += _tracks(host, exporter, seen)
        if not seen:
            silent.setdefault(f"{name} exporter answered on port {ports[name]}", []).append(host)
    untold = (f"not measured: no {what} of {', '.join(hosts)}" for what, hosts in silent.items())
    return tuple(tracks), tuple(untold)


def _pages(target: Target, telemetry: Telemetry, ports: Ports) -> Iterator[tuple[str, ExporterName, str]]:
    """Host, exporter and address."""
    at = {p.host: p.endpoints[0].address for i in target.instances for p in i.processes if p.endpoints}
    for host, address in sorted(at.items()):
        for name in telemetry.exporters:
            yield host, name, f"http://{address}:{ports[name]}/metrics"


def _values(text: str, exporter: Exporter) -> Values:
    words = {metric.metric: word for word, metric in exporter.series.items()}
    return {
        (words[s.name], s.labels.get(exporter.device, "")): s.value for s in samples(text) if s.name in words
    }


def _tracks(host: str, exporter: Exporter, seen: Sequence[tuple[float, Values]]) -> Iterator[Track]:
    for word, device in dict.fromkeys(key for _, values in seen for key in values):
        metric = exporter.series[word]
        known = [(when, values[word, device]) for when, values in seen if (word, device) in values]
        if metric.counter:
            yield Track(host, word, device, metric.unit, None, None, tuple(_growth(known)))
        else:
            values = tuple(value for _, value in known)
            yield Track(host, word, device, metric.unit, values[0], values[-1], values)


def _growth(known: Sequence[tuple[float, float]]) -> Iterator[float]:
    """A second, between each two looks; one that fell began anew, and says nothing there."""
    for (then, low), (now, high) in pairwise(known):
        if now > then and high >= low:
            yield (high - low) / (now - then)
