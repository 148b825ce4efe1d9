"""configs/runbooks → Runbooks, with every mistake in them; knows no host."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial

from launcher.load.collect import Collector
from launcher.load.data import Data
from launcher.load.knowledge import RULE_ID
from launcher.load.schema import filled, near
from launcher.load.signatures import read_log_knowledge
from launcher.model.problem import InputError, Problem
from launcher.model.runbook import NAMES, PROGRAM, VERBS, OnHost, Runbook, RunbookStep

FOLDER = "configs/runbooks"
NAME = re.compile(r"\{\{(.*?)\}\}")


def read_runbooks(data: Data) -> Mapping[str, Runbook]:
    """All runbooks by id. InputError with every Problem of every file, signatures included."""
    problems = Collector()
    signatures = {s.id for s in read_log_knowledge(data).signatures}
    found: dict[str, Runbook] = {}
    for name in data.names(FOLDER, holding=".yaml"):
        book = problems.attempt(partial(_runbook, name, data))
        if book is not None:
            found[name] = book
    problems.keep(_link_problems(found, signatures))
    problems.raise_any()
    return found


def runbook_named(name: str, books: Mapping[str, Runbook]) -> Runbook:
    """The runbook of that name; InputError where there is none."""
    if name not in books:
        raise InputError(Problem(f"no runbook is called `{name}`", where=FOLDER, do=near(name, books)))
    return books[name]


def _runbook(name: str, data: Data) -> Runbook:
    path = data.find(f"{FOLDER}/{name}.yaml")
    assert path is not None, "names() lists what find() finds"
    document = data.document(path)
    book = filled(Runbook, document, id=name)
    problems = Collector()
    if not RULE_ID.fullmatch(name):
        what = f"runbook `{name}` is not lower-case letters, digits and `-`"
        problems.keep([Problem(what, where=book.source, do="rename its file, for instance `nic-down.yaml`")])
    problems.keep(_name_problems((book.danger,), book.source, NAMES[book.target]))
    for step in book.steps:
        problems.keep(_name_problems(texts_of(step), step.source, NAMES[book.target]))
        problems.keep(_step_problems(step))
    problems.raise_any()
    return book


def texts_of(step: RunbookStep) -> tuple[str, ...]:
    """Every text of a step that may hold names."""
    host = (*step.on_host.run, step.on_host.hosts) if step.on_host else ()
    return (step.say, step.expect, step.do, step.by_hand, *host)


def _name_problems(texts: Iterable[str], where: str, names: Collection[str]) -> Iterator[Problem]:
    for name in (name for text in texts for name in NAME.findall(text)):
        if name not in names:
            yield Problem(f"`{{{{{name}}}}}` names nothing here", where=where, do=near(name, names))


def _step_problems(step: RunbookStep) -> Iterator[Problem]:
    where = step.source
    given = [word for word in ("do", "on_host", "by_hand") if getattr(step, word)]
    if len(given) != 1:
        what = f"a step is one of `do`, `on_host` and `by_hand`, this one has {' and '.join(given) or 'none'}"
        yield Problem(what, where=where, do="make a step of each")
    if step.do:
        yield from _command_problems(step.do, where)
    elif step.exits != (0,):
        yield Problem("`exits` belongs to `do`", where=where, do="remove it, or say `finds:` of the output")
    if step.on_host:
        yield from _pattern_problems(step.on_host, where)


def _command_problems(command: str, where: str) -> Iterator[Problem]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        yield Problem(f"`{command}` is no command line: {error}", where=where, do="close its quotes")
        return
    if words[:1] != [PROGRAM]:
        yield Problem(
            f"`do` is `{command}`, expected a command of ours",
            where=where,
            do=f"begin it with {PROGRAM}; what looks at a host is `on_host`, anything else `by_hand`",
        )
    elif len(words) < 2 or words[1] not in VERBS:
        verb = words[1] if len(words) > 1 else ""
        yield Problem(f"`{verb}` is no verb of runbooks", where=where, do=near(verb, VERBS))


def _pattern_problems(on_host: OnHost, where: str) -> Iterator[Problem]:
    for pattern in (on_host.finds, on_host.lacks):
        try:
            found = re.compile(pattern)
        except re.error as error:
            yield Problem(f"`{pattern}` is no regular expression: {error}", where=where, do="correct it")
            continue
        if pattern and found.search(""):
            yield Problem(f"`{pattern}` is found in everything", where=where, do="say more in it")


def _link_problems(books: Mapping[str, Runbook], signatures: Collection[str]) -> Iterator[Problem]:
    first: dict[str, Runbook] = {}
    for book in books.values():
        for name in book.signatures:
            if name not in signatures:
                what = f"runbook {book.id} is for `{name}`, which is no signature"
                yield Problem(what, where=book.source, do=near(name, signatures))
            other = first.setdefault(name, book)
            if other is not book:
                what = f"signature `{name}` has two runbooks, {other.id} and {book.id}"
                do = f"leave it to one of them, {other.source} or this one"
                yield Problem(what, where=book.source, do=do)
        for step in book.steps:
            if step.otherwise and step.otherwise not in books:
                what = f"`otherwise` is `{step.otherwise}`, which is no runbook"
                yield Problem(what, where=step.source, do=near(step.otherwise, books))
