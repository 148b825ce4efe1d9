"""Sla, Workload, Text: what a service must keep, and the load under which it must; knows no measurement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Gt, MinLen

Statistic: TypeAlias = Literal["mean", "p50", "p90", "p95", "p99"]
LimitName: TypeAlias = Literal[
    "ttft_ms", "tpot_ms", "itl_ms", "e2e_ms", "prefill_tokens_per_s_per_gpu", "tokens_per_s"
]
"""Tokens are prompt and answer together; per GPU of the prefill side."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One bound of a service level: at most, or at least; one of the two."""

    at_most: Annotated[float, Gt(0)] | None = None
    at_least: Annotated[float, Gt(0)] | None = None
    of: Statistic = "mean"
    """The article's are means."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Sla:
    """configs/slas/<name>.yaml."""

    name: str
    about: str
    limits: Mapping[LimitName, Limit]
    source: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """Requests in words, each way to ask about each topic, so that answers are text."""

    asks: Annotated[tuple[str, ...], MinLen(1)]
    """`TOPIC` in it stands for one of `topics`."""
    topics: Annotated[tuple[str, ...], MinLen(1)]

    @property
    def requests(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(ask.replace("TOPIC", topic) for topic in self.topics for ask in self.asks)


@dataclass(frozen=True, slots=True)
class Workload:
    """configs/workloads/<name>.yaml: one load for `vllm bench serve`."""

    name: str
    about: str
    input_tokens: Annotated[int, Ge(1)]
    output_tokens: Annotated[int, Ge(1)]
    prompts: Annotated[int, Ge(1)]
    concurrency: tuple[Annotated[int, Ge(1)], ...] = ()
    """Each is one run; empty: unlimited."""
    request_rate: Annotated[float, Gt(0)] | None = None
    """Requests a second; None: as fast as concurrency lets."""
    sla: str = ""
    target: Literal["service", "prefill", "decode"] = "service"
    """Whom the load goes to: through the router, or to one pool alone."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """More options of `vllm bench serve`; `true` for one that stands alone."""
    text: Text | None = None
    """What is sent in place of one of the client's own data sets."""
    source: str = ""

    @property
    def exact_input_tokens(self) -> int | None:
        """What each prompt is to be long; None where lengths vary or are those of a text."""
        varies = {"random-range-ratio", "random-prefix-len"} & self.settings.keys()
        exact = self.settings.get("dataset-name") == "random" and not varies
        return self.input_tokens if exact else None
