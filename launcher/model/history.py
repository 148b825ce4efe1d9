"""History: what came, went, was renamed or changed its default in which release of vLLM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Entry:
    """One flag, JSON key or variable over time. Releases are written `0.14.0`."""

    does: str = ""
    """One sentence, in our words: what the engine does with it. For `explain`."""
    since: str = ""
    """First release that knows it; empty: older than all we describe."""
    until: str = ""
    """First release that no longer does; empty: still there; `0.0.0`: none ever did, people write it."""
    back: str = ""
    """First release that knows it again after that."""
    ignored_since: str = ""
    """Accepted and without effect from here on."""
    instead: str = ""
    """What to write where it is gone. Another entry's name (`eplb-config.num_redundant_experts`) says that it
    lives on under that name, with the same values; anything else is a sentence."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Release → its default from there on; `0` is the beginning. Only where a snapshot cannot tell it."""
    gone: Mapping[str, str] = field(default_factory=dict)
    """Value (`pplx`) → first release that does not do what it says."""
    because: str = ""
    """Why it came, went, or changed its default."""
    known_from: str = ""
    """The source of all this."""
    source: str = ""
    """`file:line` of the entry."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Something that a release decides by itself, over time."""

    about: str
    """What it is, and what its values mean."""
    values: Mapping[str, str]
    """Release → what holds from there on; `0` is the beginning. Empty text: nothing any more."""
    known_from: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """configs/history/vllm.yaml."""

    settings: Mapping[str, Entry]
    """By flag name; JSON keys dotted: `eplb-config.use_async`."""
    variables: Mapping[str, Entry]
    behaviours: Mapping[str, Behaviour] = field(default_factory=dict)
    """By our names for them: `head-multiple-FLASHMLA_SPARSE`."""
    source: str = ""

    def entry(self, name: str) -> Entry | None:
        """What is known of a setting or variable."""
        return self.settings.get(name) or self.variables.get(name)

    def current(self, name: str) -> str:
        """The name under which a setting or variable lives on; its own where it was never renamed."""
        entry = self.entry(name)
        return self.current(entry.instead) if entry and self.entry(entry.instead) else name


def release(version: str) -> tuple[int, int, int]:
    """Major, minor and patch of a version; what follows them is left out.

    >>> release("0.33.0rc1+cpu"), release("0.14")
    ((0, 33, 0), (0, 14, 0))
    """
    parts = [_leading_number(part) for part in version.split("+")[0].split(".")[:3]]
    major, minor, patch = (*parts, 0, 0, 0)[:3]
    return major, minor, patch


def _leading_number(text: str) -> int:
    digits = text[: len(text) - len(text.lstrip("0123456789"))]
    return int(digits or 0)


def known_in(entry: Entry, version: str) -> bool:
    """Does that release know it?"""
    at = release(version)
    gone = bool(entry.until) and release(entry.until) <= at
    return release(entry.since) <= at and (not gone or (bool(entry.back) and release(entry.back) <= at))


def ignored_in(entry: Entry, version: str) -> bool:
    """Does that release accept it without doing anything?"""
    return bool(entry.ignored_since) and release(entry.ignored_since) <= release(version)


def default_in(entry: Entry, version: str) -> str | None:
    """Its default in that release; None where the history does not say."""
    return value_in(entry.defaults, version)


def value_in(values: Mapping[str, str], version: str) -> str | None:
    """What holds in a release, of `release → what holds from there on`; None before the first."""
    begun = [since for since in values if release(since) <= release(version)]
    return values[max(begun, key=release)] if begun else None


def gone_in(entry: Entry, value: str, version: str) -> bool:
    """Does that release not do what the value says?"""
    return value in entry.gone and release(entry.gone[value]) <= release(version)
