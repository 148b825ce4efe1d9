"""Revisions: hosts remember what was wanted of them, run by run, and keep what that was read from."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from launcher.execute.hands import Hands
from launcher.health.hands import look_within_s
from launcher.load import load_kept
from launcher.load.kept import pack, unpack
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.plan import Op, Plan
from launcher.model.problem import InputError, LauncherError, Problem
from launcher.model.revision import (
    HISTORY,
    WHOLE,
    Entry,
    Result,
    archive_path,
    entries_in,
    history_text,
    merged,
    with_entry,
)
from launcher.model.run import Event
from launcher.model.wish import Wanted, Wish
from launcher.resolve import resolve
from launcher.resolve.revision import revision_of
from launcher.rollout.run import Run

WITHIN_S = 30.0
WHY_LENGTH = 100
"""Characters of a reason, and of a fault, that are remembered: an entry stays short enough for `LAST`."""
PIECE = 45_000
"""Bytes of an archive in one answer: as base64 less than what an agent keeps of a program's output."""
OURS = {"mode": "0600", "owner": "root", "group": "root"}


@dataclass(slots=True)
class Note:
    """How a run ends, for whoever remembers it."""

    result: Result = "failed"
    fault: str = ""
    write: Callable[[Note], None] = lambda _: None
    """So that hosts know it at once."""

    def bad(self, fault: str) -> None:
        """A gate has found a fault, and what was before is brought back."""
        self.fault = fault[:WHY_LENGTH]
        self.write(replace(self, result="begun"))


@contextmanager
def remembered(
    fleet: Hands, wanted: Wanted, planned: Plan, run: Run, *, whole: bool = True, fault: str = ""
) -> Iterator[Note]:
    """Hosts of the plan that were reached note that this run begins, and at its end what the note says then.

    Nothing is written where nothing changes and hosts know this revision for good. `whole`: it is all that is
    wanted, not only some hosts of it; `fault`: an earlier run has found it, and this one goes back.
    """
    revision, last = revision_of(wanted), planned.remembered
    archive = cache(lambda: pack(wanted.wish.files))
    entry = begun(wanted, revision, run)

    def written(note: Note) -> None:
        write(fleet, last, replace(entry, result=note.result, fault=note.fault), archive(), run)

    note = Note(fault=fault, write=written)
    known = all(e and (e.revision, e.result) == (revision, "good") for e in last.values())
    quiet = not planned and (known or not whole)
    if not quiet:
        written(replace(note, result="begun"))
    try:
        yield note
    except LauncherError:
        note.result = "failed"
        if not quiet:
            written(note)
        raise
    if not quiet or note.fault:
        written(note)


def begun(wanted: Wanted, revision: str, run: Run) -> Entry:
    """What is remembered of a run that begins."""
    stack = wanted.wish.profile.stack
    return Entry(
        revision=revision,
        run=run.id,
        flow=run.flow,
        who=run.who,
        why=run.why[:WHY_LENGTH],
        stack=stack.name,
        version=stack.engine_version,
        result="begun",
    )


def write(fleet: Hands, hosts: Iterable[str], entry: Entry, archive: bytes, run: Run) -> None:
    """An entry in each host's history, its archive beside it, and what is too old away. Of a host that cannot
    write that is told, and no more: what is at work there matters more than its record."""
    kept = Probe("path", (archive_path(entry.revision),))
    answers = fleet.ask(dict.fromkeys(hosts, (WHOLE, kept)), within_s=look_within_s)

    def one(host: str) -> Problem | None:
        facts = answers[host]
        if isinstance(facts, Problem):
            return facts
        ops = _ops(facts, kept, entry, archive)
        done = fleet.do(host, ops, listener=run.listener, within_s=WITHIN_S, subject="revision")
        return done.error

    for host, problem in fleet.map(tuple(answers), one).items():
        if problem:
            run.listener(Event("change-failed", f"not remembered: {problem.what}", host, "revision"))


def _ops(facts: Facts, kept: Probe, entry: Entry, archive: bytes) -> tuple[Op, ...]:
    before = entries_in(facts[WHOLE])
    after = with_entry(before, entry)
    gone = {e.revision for e in before} - {e.revision for e in after}
    there = not isinstance(facts[kept], Unknown) and facts[kept].get("size") == len(archive)
    put = () if there else (Op("put", {"path": archive_path(entry.revision), **OURS}, archive),)
    removed = (Op("remove", {"path": archive_path(old)}) for old in sorted(gone))
    return (*put, *removed, Op("put", {"path": HISTORY, **OURS}, history_text(after).encode()))


def recall(fleet: Hands, hosts: Iterable[str]) -> tuple[tuple[Entry, ...], tuple[Problem, ...]]:
    """What hosts remember, one entry for each run, oldest first; and the hosts that do not answer."""
    answers = fleet.ask(dict.fromkeys(hosts, (WHOLE,)), within_s=look_within_s)
    histories = (entries_in(a[WHOLE]) for a in answers.values() if isinstance(a, Facts))
    return merged(histories), tuple(a for a in answers.values() if isinstance(a, Problem))


def chosen(entries: Sequence[Entry], word: str) -> Entry:
    """The newest entry of the revision that begins with `word`. InputError where none or several do."""
    found = {e.revision: e for e in entries if e.revision.startswith(word)}
    if len(found) == 1:
        return next(iter(found.values()))
    known = list(dict.fromkeys(e.revision for e in reversed(entries)))
    what = f"{len(found)} revisions begin with `{word}`" if found else f"no revision `{word}` is kept"
    why = f"there are {', '.join(known)}" if known else "no run has made one yet"
    raise InputError(Problem(what, "--to", why=why, do="dsv32-launch revisions lists them"))


def fetched(fleet: Hands, hosts: Iterable[str], entry: Entry) -> bytes:
    """The archive of a revision, from the first host that has it whole. LauncherError where none has."""
    path = archive_path(entry.revision)
    kept = Probe("path", (path,))
    answers = fleet.ask(dict.fromkeys(hosts, (kept,)), within_s=look_within_s)
    for host, facts in answers.items():
        told = facts[kept] if isinstance(facts, Facts) else {}
        if not isinstance(told, Unknown) and told.get("size"):
            archive = _read(fleet, host, path, told["size"])
            if archive is not None:
                return archive
    what = f"no host gives the archive of revision {entry.revision}"
    raise LauncherError(Problem(what, path, do="name another one: dsv32-launch revisions"))


def _read(fleet: Hands, host: str, path: str, size: int) -> bytes | None:
    script = f"tail -c +{{}} {path} | head -c {PIECE} | base64 -w 0"
    pieces = [Probe("command", (("sh", "-c", script.format(at + 1)), 30)) for at in range(0, size, PIECE)]
    facts = fleet.ask({host: pieces}, within_s=look_within_s)[host]
    if isinstance(facts, Problem) or any(isinstance(facts[p], Unknown) for p in pieces):
        return None
    archive = b"".join(base64.b64decode(facts[p]["stdout"]) for p in pieces)
    return archive if len(archive) == size else None


def wanted_of(
    fleet: Hands, entry: Entry, present: Wish, folder: Path, *, environment: Mapping[str, str] | None
) -> Wanted:
    """What must be true by a revision, laid out in `folder`: on the hosts of today, some of which it may not
    have known. What is ours there is to go."""
    hosts = present.inventory.hosts
    unpack(fetched(fleet, hosts, entry), folder)
    wanted = resolve(load_kept(folder, present.inventory, environment=environment))
    return replace(wanted, steps={**dict.fromkeys(hosts, ()), **wanted.steps})
