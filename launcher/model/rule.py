"""Rule, Condition, Sample: what is known to fail, hang, run slowly or answer wrongly; knows no launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from annotated_types import MinLen

Severity: TypeAlias = Literal["error", "warning", "note"]
"""error: it does not start, hangs, or answers wrongly; warning: it is slow, fragile or insecure; note: worth
knowing."""
Scope: TypeAlias = Literal["launch", "instance", "pair"]
"""launch: each process by itself; instance: all processes of an instance; pair: each prefill launch with each
decode launch."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Another subject to compare with."""

    setting: str = ""
    variable: str = ""
    value: str = ""
    of: Literal["", "prefill", "decode"] = ""
    """Scope pair: of that side's launch; empty: of the one that the condition looks at."""


Operand: TypeAlias = str | tuple[str, ...] | Reference


@dataclass(frozen=True, slots=True)
class Condition:
    """One subject and its tests, or a combination of conditions. All tests given must hold.

    A condition is true, false, or cannot be told, when its subject is unknown. What is absent (not given, and
    without a default that is known) is unlike everything, and passes no other test but `given: false`.
    """

    setting: str = ""
    """A flag by its current name, dotted into JSON (`eplb-config.num_redundant_experts`). One that is not
    given has the release's default where that is known."""
    variable: str = ""
    """An environment variable."""
    value: str = ""
    """A quantity of launcher/lint/quantities.py (`heads_per_rank`)."""
    unit: str = ""
    """A directive of the systemd unit (`LimitMEMLOCK`). Does not hold where no unit is seen."""
    of: Literal["", "prefill", "decode"] = ""
    """Scope pair: whose subject; empty: either's."""
    given: bool | None = None
    """Was it written at all (defaults do not count)?"""
    equals: Operand | None = None
    """Equal to this, or to one of these. Numbers compare as numbers, true/false as such."""
    unlike: Operand | None = None
    """Equal to none of these."""
    matches: str = ""
    """A regular expression is found in it."""
    above: Operand | None = None
    below: Operand | None = None
    multiple_of: Operand | None = None
    no_multiple_of: Operand | None = None
    apart: bool | None = None
    """Scopes instance and pair: do the launches disagree on it?"""
    any: tuple[Condition, ...] = ()
    """At least one holds."""
    none: tuple[Condition, ...] = ()
    """Not one holds."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """A launch that shows a rule at work: `text` alone, or `prefill` and `decode`.

    Texts are read as foreign files are: a shell command with variables before it, or a systemd unit.
    """

    engine: str
    """vLLM release, `0.14.1`; `unknown`: as in a file that does not say."""
    text: str = ""
    prefill: str = ""
    decode: str = ""
    model: str = "deepseek-v3.2"
    hardware: str = "h200"


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that is known, with the releases it holds for. In configs/rules/<topic>.yaml, by id."""

    id: str
    severity: Severity
    when: Annotated[tuple[Condition, ...], MinLen(1)]
    """All must hold."""
    what: str
    """One line; `{name}` is the text of a setting, variable or quantity. Expected and found."""
    why: str
    """What happens then."""
    fix: str
    known_from: str
    """An issue, a pull request, a file of a release, a paper, a run."""
    fires: Annotated[tuple[Sample, ...], MinLen(1)]
    passes: Annotated[tuple[Sample, ...], MinLen(1)]
    """Near misses: as close to `fires` as can be, and right."""
    scope: Scope = "launch"
    since: str = ""
    """First release it holds for; empty: all."""
    until: str = ""
    """First release it no longer holds for; empty: still true."""
    pools: tuple[Literal["prefill", "decode"], ...] = ()
    """Only these sides; empty: any launch."""
    source: str = ""
    """`file:line` of the rule."""
