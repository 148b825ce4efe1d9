"""configs/checks → Checks, with every mistake in them; knows no host."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import partial

from launcher.load.collect import Collector
from launcher.load.data import Data
from launcher.load.document import Document, Location
from launcher.load.knowledge import RULE_ID
from launcher.load.schema import fill, filled, near
from launcher.model.check import PROGRAMS, Check, Expectation, Question, TopicFile
from launcher.model.problem import InputError, Problem

FOLDER = "configs/checks"
SHELL = re.compile(r"[<>;&`]|\$\(|^\|")
"""What would mean something to a shell; there is none, and a word like that is a mistake or a trick."""
SHARED = ("hardware", "pools", "needs")
HOW = ("columns", "within_s", "over", "environment")
"""Fields of a question that are no question."""


def read_checks(data: Data) -> tuple[Check, ...]:
    """All checks, by topic and then as written. InputError with every Problem of every file."""
    problems = Collector()
    found: dict[str, Check] = {}
    for topic in data.names(FOLDER, holding=".yaml"):
        for check in problems.attempt(partial(_topic, topic, data)) or ():
            first = found.setdefault(check.id, check)
            if first is not check:
                what = f"check `{check.id}` is here a second time, first at {first.source}"
                problems.keep([Problem(what, where=check.source, do="rename or remove one of the two")])
    for check in found.values():
        problems.keep(_need_problems(check, found))
    problems.raise_any()
    return tuple(found.values())


def _topic(topic: str, data: Data) -> tuple[Check, ...]:
    path = data.find(f"{FOLDER}/{topic}.yaml")
    assert path is not None, "names() lists what find() finds"
    document = data.document(path)
    assert isinstance(document.values, dict)
    head = filled(TopicFile, document, without="checks")
    written = document.values.get("checks")
    if not isinstance(written, dict):
        what = "`checks` is not a mapping of ids to checks"
        raise InputError(Problem(what, where=document.place(("checks",)), do="write `id: {title: ...}`"))
    problems = Collector()
    read = [
        problems.attempt(partial(_check, topic, head, document, str(name), value))
        for name, value in written.items()
    ]
    problems.raise_any()
    return tuple(check for check in read if check)


def _check(topic: str, head: TopicFile, document: Document, name: str, value: object) -> Check:
    def place(inside: Location) -> str:
        return document.place(("checks", name, *inside))

    if isinstance(value, dict) and isinstance(document.values, dict):
        value = {**{word: document.values[word] for word in SHARED if word in document.values}, **value}
    check = fill(Check, value, place=place, given={"id": name, "topic": topic})
    if isinstance(check.ask, str):
        if check.ask not in head.questions:
            what = f"check {name} asks `{check.ask}`, which is no question of this file"
            raise InputError(Problem(what, where=check.source, do=near(check.ask, head.questions)))
        check = replace(check, ask=head.questions[check.ask])
    problems = tuple(_problems(check))
    if problems:
        raise InputError(*problems)
    return check


def _problems(check: Check) -> Iterator[Problem]:
    def wrong(what: str, do: str) -> Problem:
        return Problem(f"check {check.id} {what}", where=check.source, do=do)

    if not RULE_ID.fullmatch(check.id):
        yield wrong("is not lower-case letters, digits and `-`", "rename it, for instance `fabric-completed`")
    assert isinstance(check.ask, Question)
    asked = [f.name for f in fields(Question) if f.name not in HOW and getattr(check.ask, f.name)]
    if len(asked) != 1:
        yield wrong(f"asks {' and '.join(asked) or 'nothing'}", "ask one question: `command`, `file`, …")
    yield from _command_problems(check, check.ask.command)
    if check.column and check.column not in check.ask.columns:
        yield wrong(f"reads a column `{check.column}`", near(check.column, check.ask.columns))
    if check.column and check.read:
        yield wrong("has both `read` and `column`", "remove one of them")
    try:
        groups = re.compile(check.read).groupindex
        if check.read and "value" not in groups:
            yield wrong("reads without a group `value`", "write (?P<value>...) around what is meant")
    except re.error as error:
        yield wrong(f"reads with `{check.read}`, no regular expression: {error}", "correct it")
    tests = _tests(check.expect)
    if len(tests) > 1 or not (tests or check.across):
        yield wrong(f"expects {' and '.join(tests) or 'nothing'}", "expect one thing, or say `across`")
    if check.refuses_up and (check.severity != "error" or check.owner == "us"):
        yield wrong("refuses `up`, but is no error of somebody else's", "remove `refuses_up`")
    if (check.across == "near") != (check.by is not None):
        yield wrong("compares by `near` without `by`, or the other way round", "say both, or none of the two")
    for part, whole in (("over", "command"), ("environment", "imports")):
        if getattr(check.ask, part) and not getattr(check.ask, whole):
            yield wrong(f"asks `{part}` without `{whole}`", f"add `{whole}`, or remove it")
    if check.across and any(isinstance(sample, str) for sample in (*check.passes, *check.fails)):
        yield wrong("compares hosts, and a sample has one answer", "write a list of answers")


def _tests(expect: Expectation | None) -> list[str]:
    """The names of the tests that an expectation has."""
    empty = Expectation()
    return [
        f.name for f in fields(Expectation) if expect and getattr(expect, f.name) != getattr(empty, f.name)
    ]


def _command_problems(check: Check, words: tuple[str, ...]) -> Iterator[Problem]:
    if words and words[0].rpartition("/")[2] not in PROGRAMS:
        what = f"check {check.id} starts `{words[0]}`, which is none of the programs that checks may"
        yield Problem(what, where=check.source, do=near(words[0], PROGRAMS))
    for word in words:
        if SHELL.search(word.partition("{{")[0]):
            what = f"check {check.id} has `{word}` in `{shlex.join(words)}`, as if for a shell"
            yield Problem(what, where=check.source, do="there is no shell: read the program's whole output")


def _need_problems(check: Check, known: Mapping[str, Check]) -> Iterator[Problem]:
    like = check.expect.like if check.expect else None
    for need in (*check.needs, *([like] if like else [])):
        if need not in known:
            what = f"check {check.id} needs `{need}`, which is no check"
            yield Problem(what, where=check.source, do=near(need, known))
        elif check.id in _all_needs(need, known):
            what = f"check {check.id} needs itself, by way of {need}"
            yield Problem(what, where=check.source, do="remove one `needs`")


def _all_needs(name: str, known: Mapping[str, Check]) -> set[str]:
    """A check's needs, and theirs."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        check = known.get(waiting.pop())
        more = set(check.needs) - found if check else set()
        found |= more
        waiting += more
    return found
