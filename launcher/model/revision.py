"""Revision: all that was wanted of a fleet at a time; what hosts remember of those they had."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import Any, Literal, TypeAlias, get_args

from launcher.model.facts import Facts, Probe, Unknown

FOLDER = "/var/lib/dsv32/revisions"
"""Beside what guards remember: a record of the tool's, not configuration."""
HISTORY = f"{FOLDER}/history.jsonl"
LAST = Probe("read", (HISTORY, -1000))
"""Its end; asked beside other questions, so that it costs no request, and few bytes: a line has some 80,
and a reason and a fault at most 400 more each."""
WHOLE = Probe("read", (HISTORY, 262144))

KEPT = 10
"""Revisions that are kept: enough for weeks of changes, at some 40 kB each."""
LINES = 200
"""Runs that are remembered."""

Result: TypeAlias = Literal["begun", "good", "part", "failed", "bad"]
"""part: done well, on some of the hosts or instances only; bad: a gate said so, and it went back."""
RESULTS: tuple[Result, ...] = get_args(Result)


@dataclass(frozen=True, slots=True)
class Entry:
    """One run that made a fleet what a revision says, or tried to."""

    revision: str
    run: str
    """Its name, which begins with the time at which it began: `20261129T180000Z`."""
    flow: str
    """The command: up, rollback."""
    who: str
    why: str
    stack: str
    version: str
    """The engine's."""
    result: Result
    fault: str = ""
    """What a gate found worse. Until the result is `bad` the service is on its way back."""

    @property
    def goes_back(self) -> bool:
        """A gate has decided so, and the way back has not come to its end."""
        return bool(self.fault) and self.result != "bad"

    @property
    def when(self) -> str:
        """UTC, ISO 8601, to the second."""
        digits = self.run.partition("-")[0].rstrip("Z")
        date, _, time = digits.partition("T")
        return f"{date[:4]}-{date[4:6]}-{date[6:]}T{time[:2]}:{time[2:4]}:{time[4:]}Z"


def archive_path(revision: str) -> str:
    """Where a host keeps it."""
    return f"{FOLDER}/{revision}.tgz"


def entries_in(answer: Any) -> tuple[Entry, ...]:
    """The entries in an answer to LAST or WHOLE, oldest first; what nobody can read is left out."""
    text = "" if isinstance(answer, Unknown) else answer.get("text", "")
    return tuple(e for line in text.splitlines() if (e := _entry(line)))


def history_text(entries: Iterable[Entry]) -> str:
    """The file's content: a list a line, without names, for its end travels with each plan; a fault last,
    where there is one."""
    words = (astuple(e) if e.fault else astuple(e)[:-1] for e in entries)
    lines = (json.dumps(w, ensure_ascii=False, separators=(",", ":")) for w in words)
    return "".join(f"{line}\n" for line in lines)


def last_by_host(answers: Mapping[str, Facts]) -> dict[str, Entry | None]:
    """Host → the last entry that it has."""
    return {host: next(reversed(entries_in(facts[LAST])), None) for host, facts in answers.items()}


def with_entry(before: Iterable[Entry], entry: Entry) -> tuple[Entry, ...]:
    """Those and this one, in place of what was written when its run began; old ones are forgotten."""
    entries = (*(e for e in before if e.run != entry.run), entry)[-LINES:]
    kept = kept_revisions(entries)
    return tuple(e for e in entries if e.revision in kept)


def kept_revisions(entries: Iterable[Entry]) -> frozenset[str]:
    """The newest ones, and always the last good one."""
    newest = list(reversed(tuple(entries)))
    good = next((e.revision for e in newest if e.result == "good"), "")
    return frozenset({*list(dict.fromkeys(e.revision for e in newest))[:KEPT], good} - {""})


def merged(histories: Iterable[Iterable[Entry]]) -> tuple[Entry, ...]:
    """One for each run, oldest first: hosts may have missed a run, its end, or its fault."""
    found: dict[str, Entry] = {}
    for entry in (e for history in histories for e in history):
        known = found.get(entry.run, entry)
        found[entry.run] = max(known, entry, key=lambda e: (e.result != "begun", bool(e.fault)))
    return tuple(sorted(found.values(), key=lambda e: e.run))


def unfinished(last: Iterable[Entry | None]) -> Entry | None:
    """The newest of these that has not ended: its run is at work, or was killed."""
    begun = [e for e in last if e and e.result == "begun"]
    return max(begun, key=lambda e: e.run, default=None)


def running(entries: Iterable[Entry]) -> str:
    """The revision that was proved last, which is what runs if nothing was tried since; empty for none."""
    return next((e.revision for e in reversed(tuple(entries)) if e.result == "good"), "")


def good_before(entries: Iterable[Entry], present: str) -> str | None:
    """The revision to go back to, where the inventory says `present`; None where there is none.

    A rollback that did not come to its end goes on to where it went. From what was tried and is not good, it
    is the last good one; from what is good, the one before that, but not the one that was left for it.
    """
    newest = list(reversed(tuple(entries)))
    last = newest[0] if newest else None
    if last and last.flow == "rollback" and last.result != "good":
        return last.revision
    away = {last.revision if last else "", present if last and last.result == "good" else ""}
    return next((e.revision for e in newest if e.result == "good" and e.revision not in away), None)


def _entry(line: str) -> Entry | None:
    try:
        revision, run, flow, who, why, stack, version, word, *fault = map(str, json.loads(line))
        result = next(known for known in RESULTS if known == word)
        return Entry(revision, run, flow, who, why, stack, version, result, *fault)
    except (ValueError, TypeError, StopIteration):
        return None
