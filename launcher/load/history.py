"""configs/history/vllm.yaml → History, with releases that are releases and come one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from launcher.load.collect import Collector
from launcher.load.data import Data
from launcher.load.document import Document, Location
from launcher.load.schema import filled
from launcher.model.history import Entry, History, release
from launcher.model.problem import InputError, Problem

FILE = "configs/history/vllm.yaml"
ORDERED = (("since", "until"), ("until", "back"), ("since", "ignored_since"), ("ignored_since", "until"))
"""Of each two the second is the later release."""


def read_history(data: Data) -> History:
    """What is known of vLLM's releases. InputError with every Problem of the file."""
    path = data.find(FILE)
    if path is None:
        raise InputError(Problem("no such file", where=FILE, do="restore it: it comes with this program"))
    document = data.document(path)
    history = filled(History, document)
    problems = Collector()
    for kind, entries in (("settings", history.settings), ("variables", history.variables)):
        for name, entry in entries.items():
            problems.keep(_entry_problems((kind, name), entry, document))
            problems.keep(_successor_problems((kind, name), history, document))
    for name, behaviour in history.behaviours.items():
        problems.keep(_release_problems(("behaviours", name, "values"), behaviour.values, document))
    problems.raise_any()
    return history


def _entry_problems(at: Location, entry: Entry, document: Document) -> Iterator[Problem]:
    bounds = {word: getattr(entry, word) for word in ("since", "until", "back", "ignored_since")}
    for word, version in bounds.items():
        if version and not _is_release(version):
            yield _no_release(version, document.place((*at, word)))
    yield from _release_problems((*at, "defaults"), entry.defaults, document)
    for value, version in entry.gone.items():
        if not _is_release(version):
            yield _no_release(version, document.place((*at, "gone", value)))
    for early, late in ORDERED:
        first, then = bounds[early], bounds[late]
        if first and then and release(then) <= release(first):
            what = f"`{at[-1]}`: {late} is {then}, not after {early} {first}"
            yield Problem(what, where=document.place((*at, late)), do="exchange or correct them")
    if entry.instead and not entry.until:
        what = f"`{at[-1]}` says what to write instead, and not since when it is gone"
        yield Problem(what, where=document.place((*at, "instead")), do="add `until:`, or remove `instead`")


def _release_problems(at: Location, values: Mapping[str, str], document: Document) -> Iterator[Problem]:
    for version in values:
        if version != "0" and not _is_release(version):
            yield _no_release(version, document.place((*at, version)))


def _successor_problems(at: Location, history: History, document: Document) -> Iterator[Problem]:
    """Names that live on as each other have no current one."""
    start = str(at[-1])
    name, seen = start, [start]
    while (entry := history.entry(name)) and history.entry(entry.instead):
        name = entry.instead
        if name in seen:
            what = f"names live on as each other: {' → '.join((*seen, name))}"
            yield Problem(what, where=document.place((*at, "instead")), do="correct one `instead`")
            return
        seen.append(name)


def _is_release(text: str) -> bool:
    return text.count(".") == 2 and ".".join(map(str, release(text))) == text


def _no_release(version: str, where: str) -> Problem:
    return Problem(f"`{version}` is no release", where=where, do="write it with three numbers, like 0.14.0")
