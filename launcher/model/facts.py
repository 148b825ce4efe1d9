"""Probe, Facts, Unknown: questions to a host and its answers; knows nothing of how they were asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Probe:
    """A read-only question. `kind` is one of the agent's probes; `args` are plain JSON values."""

    kind: str
    args: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Unknown:
    """An answer that could not be had: a value, not an exception."""

    reason: str

    def __str__(self) -> str:
        return f"unknown ({self.reason})"


@dataclass(frozen=True, slots=True)
class Facts(Mapping[Probe, Any]):
    """All answers of one host. A probe that was not asked is a KeyError: a bug of ours."""

    host: str
    answers: Mapping[Probe, Any] = field(default_factory=dict)
    ahead_s: float = 0.0
    """Seconds that the host's clock is ahead of the controller's, as far as that is certain."""

    def __getitem__(self, probe: Probe) -> Any:
        return self.answers[probe]

    def __iter__(self) -> Iterator[Probe]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)
