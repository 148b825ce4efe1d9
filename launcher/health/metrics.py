"""Reading: our words' values in an engine's /metrics text; the only door to the Prometheus parser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

SelectorLabels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reading:
    """The values of one endpoint at one moment: word → engine (its data-parallel rank) → value."""

    values: Mapping[str, Mapping[str, float]]

    def total(self, word: str) -> float:
        """The sum over all ranks; 0 where the endpoint does not have it (yet)."""
        return sum(self.values.get(word, {}).values())

    def ranks(self, word: str) -> Mapping[str, float]:
        """Rank → value."""
        return self.values.get(word, {})


def read(text: str, names: Mapping[str, str]) -> Reading:
    """What the text says for each word; `names` are Prometheus names, with `{label="value"}` where needed."""
    wanted = {word: next(samples(f"{name} 0\n")) for word, name in names.items()}
    by_name: dict[str, list[tuple[str, SelectorLabels]]] = {}
    for word, selector in wanted.items():
        by_name.setdefault(selector.name, []).append((word, selector.labels))
    values: dict[str, dict[str, float]] = {}
    for sample in samples(text):
        for word, labels in by_name.get(sample.name, ()):
            if labels.items() <= sample.labels.items():
                ranks = values.setdefault(word, {})
                rank = sample.labels.get("engine", "")
                ranks[rank] = ranks.get(rank, 0.0) + sample.value
    return Reading(values)


def by_label(text: str, *, name: str, label: str) -> Mapping[str, float]:
    """One metric's values, by one of its labels."""
    return {s.labels[label]: s.value for s in samples(text) if s.name == name and label in s.labels}


def samples(text: str) -> Iterator[Sample]:
    """All samples of an exposition text."""
    # slow to import, and most commands never read a metric
    from prometheus_client.parser import text_string_to_metric_families

    for family in text_string_to_metric_families(text):
        yield from family.samples
