"""Match, read_matches: which signature, or error that nobody knows, a log line shows; knows no causes."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from launcher.health.errors import alternatives
from launcher.health.marks import Marks
from launcher.model.history import release
from launcher.model.profile import Engine
from launcher.model.signature import ANY, LogForms, LogKnowledge, LogLine, Signature

KERNEL = "kernel"
NUMBERS = re.compile(r"[0-9a-f]*\d[0-9a-f]*")
LEVELS = ("info", "warning", "error")
# how far from a line its companions may stand in the same log: a traceback is seldom longer
BESIDE_LINES = 100
# what one process says of one failure comes in one go, over several tracebacks
SAME_BREATH_S = 3.0


@dataclass(frozen=True, slots=True)
class Match:
    """One line that says something is wrong."""

    line: LogLine
    signature: Signature | None
    """None: the engine calls it fatal, and nothing is known of it."""
    text: str
    """The line from where the failure's own words begin."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """Named groups of the pattern that was found."""
    silent_s: float = 0.0
    """How long before the line it may have begun: a host that boots has been silent since it went down."""

    @property
    def began_s(self) -> float:
        """The earliest time at which it may have begun."""
        return self.line.time_s - self.silent_s

    @property
    def key(self) -> str:
        """What equal matches have in common: the signature, or the line without its numbers and names made of
        them."""
        return self.signature.id if self.signature else NUMBERS.sub("#", self.text)


class Reader:
    """Finds matches, with all patterns compiled once."""

    def __init__(self, knowledge: LogKnowledge, engine: Engine, version: str) -> None:
        """`version`: of the engine; empty: unknown, and every signature may hold."""
        forms = knowledge.forms
        self._noise, self._marks = alternatives(forms.noise), Marks(forms)
        self._fatal, self._ignore = alternatives(engine.fatal), alternatives(engine.ignore)
        holding = [s for s in knowledge.signatures if not version or holds_in(s, version)]
        # one with companions says more of a line than one without
        holding.sort(key=lambda s: not s.beside)
        compiled = [(s, re.compile(p)) for s in holding for p in s.patterns]
        # most lines of a service that serves are news, of which hardly a signature speaks
        self._patterns = [[(s, p) for s, p in compiled if LEVELS.index(s.level) <= n] for n in range(3)]

    def matches(self, lines: Sequence[LogLine]) -> Iterator[Match]:
        """Of one log, in its order; unknown errors only where no cause is told in the same breath."""
        found = [(n, m) for n, line in enumerate(lines) if (m := self._match(lines, n, line))]
        passed = passed_at(found, lines)
        kept = [m for n, m in found if n >= passed.get(m.key, -1)]
        causes_s = [m.line.time_s for m in kept if m.signature and first_of_all(m.signature)]
        times = Counter(m.key for m in kept)
        for match in kept:
            if match.signature:
                if times[match.key] >= match.signature.times:
                    yield match
            elif not any_near(causes_s, match.line.time_s):
                yield match

    def _match(self, lines: Sequence[LogLine], at: int, line: LogLine) -> Match | None:
        text = line.text
        for signature, pattern in self._patterns[self._level(text)]:
            match = pattern.search(text)
            if match and fits(signature, lines, at) and not self._noise.search(text):
                groups = {name: said for name, said in match.groupdict().items() if said}
                return Match(line, signature, text[match.start() :].strip(), groups)
        fatal = self._fatal.search(text)
        if fatal and not self._ignore.search(text) and not self._noise.search(text):
            return Match(line, None, text[fatal.start() :].strip())
        return None

    def _level(self, text: str) -> int:
        """What a line is worth, as a place in LEVELS; one that does not say counts as an error."""
        return LEVELS.index(self._marks.of(text) or "error")


def read_matches(
    lines: Iterable[LogLine], knowledge: LogKnowledge, engine: Engine, *, version: str
) -> tuple[Match, ...]:
    """The matches of all logs, in time order."""
    reader = Reader(knowledge, engine, version)
    by_log = sorted(lines, key=lambda line: (line.host, line.unit))
    logs = [list(log) for _, log in groupby(by_log, key=lambda line: (line.host, line.unit))]
    found = [match for log in logs for match in reader.matches(log)]
    counted = (ran_before(m, logs) if m.signature and m.signature.running else m for m in found)
    # of the same moment, what the kernel says comes first: it saw it happen
    return tuple(sorted(filter(None, counted), key=lambda m: (m.began_s, m.line.unit != KERNEL)))


def ran_before(match: Match, logs: Iterable[Sequence[LogLine]]) -> Match | None:
    """The match, begun when anything of ours last said something on its host; None if nothing ran there."""
    own = (line for log in logs if log[0].instance and log[0].host == match.line.host for line in log)
    last_s = max((line.time_s for line in own if line.time_s < match.line.time_s), default=None)
    return None if last_s is None else replace(match, silent_s=match.line.time_s - last_s)


def first_of_all(signature: Signature) -> bool:
    """Is it a cause that nothing unknown can have led to?"""
    return signature.role == "cause" and ANY not in signature.of


def fits(signature: Signature, lines: Sequence[LogLine], at: int) -> bool:
    """Are its companions there, and those that speak against it not?"""
    if not signature.beside and not signature.unless:
        return True
    around = [line.text for line in lines[max(0, at - BESIDE_LINES) : at + BESIDE_LINES + 1]]
    there = all(any(re.search(p, text) for text in around) for p in signature.beside)
    return there and not any(re.search(p, text) for p in signature.unless for text in around)


def passed_at(found: Iterable[tuple[int, Match]], lines: Sequence[LogLine]) -> Mapping[str, int]:
    """Key of a match → the last line that says that it has passed: what is before it means nothing."""
    ends = {m.key: re.compile(m.signature.over) for _, m in found if m.signature and m.signature.over}
    return {
        key: next((n for n in range(len(lines) - 1, -1, -1) if over.search(lines[n].text)), -1)
        for key, over in ends.items()
    }


def any_near(times_s: Sequence[float], time_s: float) -> bool:
    """Is one of these times, which are in order, in the same breath?"""
    at = bisect_left(times_s, time_s - SAME_BREATH_S)
    return at < len(times_s) and times_s[at] <= time_s + SAME_BREATH_S


def holds_in(signature: Signature, version: str) -> bool:
    """Does it hold in that release?"""
    at = release(version)
    return release(signature.since) <= at and not (signature.until and release(signature.until) <= at)


def version_told(lines: Iterable[LogLine], forms: LogForms) -> str:
    """The release that an engine says it is; empty if none does, or two say different ones."""
    pattern = re.compile(forms.version)
    told = {match["version"] for line in lines if (match := pattern.search(line.text))}
    return told.pop() if len(told) == 1 else ""
