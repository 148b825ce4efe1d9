"""Match, read_matches: which signature, or error that nobody knows, a log line shows; knows no causes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby

from launcher.health.errors import alternatives
from launcher.model.history import release
from launcher.model.profile import Engine
from launcher.model.signature import ANY, LogForms, LogKnowledge, LogLine, Signature

KERNEL = "kernel"
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
        """What equal matches have in common: the signature, or the words of the line without its numbers."""
        return self.signature.id if self.signature else re.sub(r"\d+", "#", self.text)


class Reader:
    """Finds matches, with all patterns compiled once."""

    def __init__(self, knowledge: LogKnowledge, engine: Engine, version: str) -> None:
        """`version`: of the engine; empty: unknown, and every signature may hold."""
        self._forms = knowledge.forms
        self._fatal, self._ignore = alternatives(engine.fatal), alternatives(engine.ignore)
        holding = [s for s in knowledge.signatures if not version or holds_in(s, version)]
        # one with companions says more of a line than one without
        holding.sort(key=lambda s: not s.beside)
        self._signatures = [(s, [re.compile(p) for p in s.patterns]) for s in holding]

    @cached_property
    def _info(self) -> re.Pattern[str]:
        return alternatives(self._forms.info)

    @cached_property
    def _warning(self) -> re.Pattern[str]:
        return alternatives(self._forms.warning)

    @cached_property
    def _noise(self) -> re.Pattern[str]:
        return alternatives(self._forms.noise)

    def matches(self, lines: Sequence[LogLine]) -> Iterator[Match]:
        """Of one log, in its order; unknown errors only where no cause is told in the same breath."""
        found = [m for n, line in enumerate(lines) if (m := self._match(lines, n, line))]
        causes_s = [m.line.time_s for m in found if m.signature and first_of_all(m.signature)]
        times = Counter(m.key for m in found)
        for match in found:
            if match.signature:
                if times[match.key] >= match.signature.times:
                    yield match
            elif not any(abs(match.line.time_s - time_s) <= SAME_BREATH_S for time_s in causes_s):
                yield match

    def _match(self, lines: Sequence[LogLine], at: int, line: LogLine) -> Match | None:
        level = self.level(line.text)
        if level is None:
            return None
        for signature, patterns in self._signatures:
            if LEVELS.index(signature.level) > level:
                continue
            match = next((m for p in patterns if (m := p.search(line.text))), None)
            if match and fits(signature, lines, at) and not is_over(signature, lines[at + 1 :]):
                groups = {name: text for name, text in match.groupdict().items() if text}
                return Match(line, signature, line.text[match.start() :].strip(), groups)
        fatal = self._fatal.search(line.text)
        if fatal and not self._ignore.search(line.text):
            return Match(line, None, line.text[fatal.start() :].strip())
        return None

    def level(self, text: str) -> int | None:
        """What a line says it is worth, as a place in LEVELS; None for noise."""
        if not text or self._noise.search(text):
            return None
        if self._info.search(text):
            return LEVELS.index("info")
        return LEVELS.index("warning" if self._warning.search(text) else "error")


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


def is_over(signature: Signature, later: Iterable[LogLine]) -> bool:
    """Does a later line say that it has passed?"""
    return bool(signature.over) and any(re.search(signature.over, line.text) for line in later)


def holds_in(signature: Signature, version: str) -> bool:
    """Does it hold in that release?"""
    at = release(version)
    return release(signature.since) <= at and not (signature.until and release(signature.until) <= at)


def version_told(lines: Iterable[LogLine], forms: LogForms) -> str:
    """The release that an engine says it is; empty if none does, or two say different ones."""
    pattern = re.compile(forms.version)
    told = {match["version"] for line in lines if (match := pattern.search(line.text))}
    return told.pop() if len(told) == 1 else ""
