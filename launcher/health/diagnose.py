"""diagnose: what happened first, out of the log lines of all hosts; knows no transport and no screen.

Hosts' clocks differ: between hosts, what came up to CLOCKS_S later may still have come first.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from launcher.health.matches import SAME_BREATH_S, Match, read_matches
from launcher.model.profile import Engine
from launcher.model.signature import ANY, LogKnowledge, LogLine, Signature

CLOCKS_S = 5.0
# an error that nobody knows is taken for a consequence of another one for so long
UNKNOWN_WITHIN_S = 120.0
Sure: TypeAlias = Literal["confirmed", "matched", "not seen now", "depends", "consequence", "unknown"]
"""confirmed: a signature, and the host says so, too; matched: a signature; not seen now: a signature, and the
host does not show it (any more); depends: a signature of some releases, and the release is not known;
consequence: what it comes of is not in these logs; unknown: an error line of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What came of a cause: one kind of line."""

    match: Match
    """The first one."""
    count: int

    @property
    def what(self) -> str:
        """What happened; the line itself where nothing is known."""
        return said(self.match)


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that nothing before it explains, where it was seen, and what came of it."""

    sure: Sure
    evidence: tuple[Match, ...]
    """The first line of each log that has it, earliest first."""
    count: int
    """Lines in all."""
    effects: tuple[Effect, ...] = ()
    close: tuple[str, ...] = ()
    """Hosts that said something else within CLOCKS_S: which came first is not sure."""

    @property
    def first(self) -> Match:
        """The earliest line."""
        return self.evidence[0]

    @property
    def signature(self) -> Signature | None:
        """What is known of it."""
        return self.first.signature

    @property
    def likely(self) -> str:
        """The cause in a sentence; the line itself where nothing is known."""
        return said(self.first)

    @property
    def do(self) -> str:
        """The one thing to do."""
        if self.signature:
            return filled(self.signature.do, self.first)
        return f"dsv32-launch logs {self.first.line.instance or self.first.line.host}"

    @property
    def severity(self) -> Literal["error", "warning"]:
        """A line that the engine calls fatal is an error, and so is what leads to one."""
        told = (m.signature.severity if m.signature else "error" for m in self.matches)
        return "error" if "error" in told else "warning"

    @property
    def first_errors(self) -> tuple[Match, ...]:
        """Of each host the first line that nothing is known of, in the order of time."""
        seen = sorted((*self.evidence, *(effect.match for effect in self.effects)), key=began_s)
        found: dict[str, Match] = {}
        for match in seen:
            if match.signature is None:
                found.setdefault(match.line.host, match)
        return tuple(found.values())

    @property
    def matches(self) -> tuple[Match, ...]:
        """The earliest line, and the earliest of everything that came of it."""
        return (self.first, *(effect.match for effect in self.effects))


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All causes, the first and surest first."""

    causes: tuple[Cause, ...]
    version: str = ""
    """The engine's release that signatures were held against; empty: unknown."""


def diagnose(
    lines: Iterable[LogLine], knowledge: LogKnowledge, engine: Engine, *, version: str = ""
) -> Diagnosis:
    """Causes and their consequences."""
    lines = tuple(lines)
    matches = read_matches(lines, knowledge, engine, version=version)
    groups: dict[str, list[Match]] = {}
    for match in matches:
        groups.setdefault(match.key, []).append(match)
    came: dict[str, list[list[Match]]] = {}
    for key, above in roots_of(groups, matches, hosts_of(lines)).items():
        came.setdefault(above, []).extend([groups[key]] if key != above else [])
    causes = [cause_of(groups[key], effects, matches, version) for key, effects in came.items()]
    return Diagnosis(tuple(sorted(causes, key=rank)), version)


def hosts_of(lines: Iterable[LogLine]) -> Mapping[str, tuple[str, ...]]:
    """Instance → the hosts on which it said anything."""
    found: dict[str, dict[str, None]] = {}
    for line in lines:
        if line.instance:
            found.setdefault(line.instance, {})[line.host] = None
    return {instance: tuple(hosts) for instance, hosts in found.items()}


def roots_of(
    groups: Mapping[str, Sequence[Match]], matches: Sequence[Match], hosts: Mapping[str, tuple[str, ...]]
) -> Mapping[str, str]:
    """What each kind of line comes of in the end; itself, if nothing explains the first of them."""
    parents = {key: parent(group[0], matches, hosts) for key, group in groups.items()}
    order = {key: n for n, key in enumerate(groups)}
    return {key: root(key, parents, order) for key in groups}


def root(key: str, parents: Mapping[str, str | None], order: Mapping[str, int]) -> str:
    """The end of its chain; of a circle, which clocks that differ can make, the earliest."""
    met = [key]
    while above := parents[met[-1]]:
        if above in met:
            return min(met[met.index(above) :], key=lambda k: order[k])
        met.append(above)
    return met[-1]


def parent(match: Match, matches: Sequence[Match], hosts: Mapping[str, tuple[str, ...]]) -> str | None:
    """The kind of the earliest line that explains this one.

    For a mere consequence that may be a later one: by another host's clock, or below a traceback's heading.
    """
    _, within_s = allowed(match.signature)
    near = during(matches, min(match.began_s, match.line.time_s - within_s), match.began_s + CLOCKS_S)
    at = next(n for n, m in enumerate(near) if m is match)
    consequence = match.signature is not None and match.signature.role == "consequence"
    later = [m for m in near[at + 1 :] if may_be_first(m, match)] if consequence else []
    found = (m for m in (*near[:at], *later) if m.key != match.key and explains(m, match, hosts))
    return next((m.key for m in found), None)


def during(matches: Sequence[Match], from_s: float, to_s: float) -> Sequence[Match]:
    """Those that may have begun in that time; they are in order."""
    return matches[bisect_left(matches, from_s, key=began_s) : bisect_right(matches, to_s, key=began_s)]


def began_s(match: Match) -> float:
    """What matches are in order of."""
    return match.began_s


def may_be_first(later: Match, match: Match) -> bool:
    """Told so soon after that it may have come first, and no consequence itself?"""
    cause = later.signature is None or later.signature.role == "cause"
    soon_s = SAME_BREATH_S if later.line.host == match.line.host else CLOCKS_S
    return cause and later.began_s - match.began_s <= soon_s


def explains(cause: Match, effect: Match, hosts: Mapping[str, tuple[str, ...]]) -> bool:
    """Can the one have led to the other: known to, near enough in time, near enough in place?"""
    of, within_s = allowed(effect.signature)
    known = cause.signature
    named = {ANY} if known is None else {known.id, known.topic}
    if known and known.role == "cause" and known.severity == "error" and known.spreads:
        named.add(ANY)
    if not named & set(of):
        return False
    if effect.line.time_s - cause.began_s > within_s:
        return False
    return reaches(cause.line, effect.line, effect.signature.reach if effect.signature else "instance", hosts)


def allowed(signature: Signature | None) -> tuple[Sequence[str], float]:
    """What may explain a match, and how long before it. An error that nobody knows may come of any other."""
    return ((ANY,), UNKNOWN_WITHIN_S) if signature is None else (signature.of, float(signature.within_s))


def reaches(cause: LogLine, effect: LogLine, reach: str, hosts: Mapping[str, tuple[str, ...]]) -> bool:
    """Is the cause near enough to the effect?"""
    if reach == "everywhere" or cause.host == effect.host:
        return True
    if reach == "host":
        return False
    if not effect.instance:
        return True
    return cause.instance == effect.instance or (
        not cause.instance and cause.host in hosts.get(effect.instance, ())
    )


def cause_of(
    group: Sequence[Match], effects: Iterable[Sequence[Match]], matches: Sequence[Match], version: str
) -> Cause:
    """One cause out of all lines that show it, and all that show what came of it."""
    by_log: dict[tuple[str, str], Match] = {}
    for match in group:
        by_log.setdefault((match.line.host, match.line.unit), match)
    first = group[0].line
    came = tuple(Effect(lines[0], len(lines)) for lines in effects)
    own = {group[0].key, *(effect.match.key for effect in came)}
    began = group[0].began_s
    close = {
        m.line.host: None
        for m in during(matches, began - CLOCKS_S, began + CLOCKS_S)
        if m.key not in own
        and m.line.host != first.host
        and (m.signature is None or m.signature.role == "cause")
    }
    sure = sureness(group[0], version)
    return Cause(sure, tuple(by_log.values()), len(group), came, tuple(close))


def sureness(match: Match, version: str) -> Sure:
    """How sure a match alone makes us."""
    signature = match.signature
    if signature is None:
        return "unknown"
    if signature.role == "consequence":
        return "consequence"
    return "depends" if not version and (signature.since or signature.until) else "matched"


def rank(cause: Cause) -> tuple[int, bool, float]:
    """Errors that are known, those that are not, consequences alone, warnings; each by time, what others may
    come of first.
    """
    order = {"unknown": 1, "consequence": 2}.get(cause.sure, 0)
    alone = cause.signature is not None and not cause.signature.spreads
    return (3 if cause.severity == "warning" else order, alone, cause.first.began_s)


def said(match: Match) -> str:
    """What a match means, in a sentence."""
    return filled(match.signature.likely, match) if match.signature else match.text


def confirmation(cause: Cause) -> tuple[tuple[str, ...], re.Pattern[str]] | None:
    """A read-only command for the host of its first line, and what its output shows if it is so."""
    known = cause.signature.confirm if cause.signature else None
    if known is None:
        return None
    words = tuple(filled(word, cause.first) for word in known.run)
    return words, re.compile(filled(known.finds, cause.first, escaped=True))


def confirmed(cause: Cause, *, found: bool) -> Cause:
    """The cause after its host was asked. That something is gone now does not say that it never was."""
    if found:
        return replace(cause, sure="confirmed")
    return replace(cause, sure="not seen now") if cause.sure == "matched" else cause


def filled(text: str, match: Match, *, escaped: bool = False) -> str:
    """The text with this match's names in place of its placeholders; `escaped`: a regular expression."""
    line = match.line
    names = {"host": line.host, "unit": line.unit, "instance": line.instance or line.unit, **match.groups}
    for name, value in names.items():
        text = text.replace(f"{{{name}}}", re.escape(value) if escaped else value)
    return text
