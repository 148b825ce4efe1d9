"""Reference: a published row of figures, and the conditions it was measured under."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Ge, Gt, MinLen


@dataclass(frozen=True, slots=True)
class Reference:
    """One row. A condition that its source does not tell is left out, and equals nothing."""

    about: str
    known_from: str
    figures: Annotated[Mapping[str, Annotated[float, Gt(0)]], MinLen(1)]
    """By our words and statistics (`ttft_ms mean`, `tokens_per_s mean`) where it is what these mean, else by
    words of its own."""
    model: str = ""
    hardware: str = ""
    engine: str = ""
    pools: Mapping[str, str] = field(default_factory=dict)
    """Pool → its shape, as `Served.shape` tells it, after `N × `."""
    gpus: Annotated[int, Ge(0)] = 0
    """Of all pools."""
    input_tokens: Annotated[int, Ge(0)] = 0
    output_tokens: Annotated[int, Ge(0)] = 0
    concurrency: Annotated[int, Ge(0)] = 0
    rate: Annotated[float, Ge(0)] = 0.0
    source: str = ""
