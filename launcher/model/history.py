"""History: what came, went, was renamed or changed its default in which release of vLLM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Entry:
    """One flag, JSON key or variable over time."""

    does: str = ""
    """One sentence, in our words: what the engine does with it. For `explain`."""
    since: str = ""
    """First release that knows it; empty: older than all we describe."""
    until: str = ""
    """First release that no longer does; empty: still there."""
    ignored_since: str = ""
    """Accepted and without effect from here on."""
    instead: str = ""
    """What to write where it is gone: its new name (`eplb-config.num_redundant_experts`) or a sentence."""
    was: str = ""
    """Its earlier name, if it was renamed: flag (`old-name`) or variable (`VLLM_X`)."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Release → its default from there on; `0` is the beginning. Only where a snapshot cannot tell it."""
    gone: Mapping[str, str] = field(default_factory=dict)
    """Value (`pplx`) → first release that does not do what it says."""
    because: str = ""
    """Why it went, or why its default changed."""
    known_from: str = ""
    """The source of all this."""
    source: str = ""
    """`file:line` of the entry."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Something that the engine decides by itself where no flag says it, over time."""

    does: str
    """One sentence, in our words: what is decided."""
    values: Mapping[str, str]
    """Release → what it decides from there on; `0` is the beginning."""
    known_from: str
    source: str = ""
    """`file:line` of the behaviour."""


@dataclass(frozen=True, slots=True)
class History:
    """configs/history/vllm.yaml."""

    settings: Mapping[str, Entry]
    """By current flag name; JSON keys dotted: `eplb-config.use_async`."""
    variables: Mapping[str, Entry]
    behaviours: Mapping[str, Behaviour] = field(default_factory=dict)
    """By a name of ours, from configs/history/behaviours.yaml."""
    source: str = ""
