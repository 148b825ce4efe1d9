"""configs/checks-load → LoadChecks, with every mistake in them, and their programs; knows no host."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial

from launcher.load.collect import Collector
from launcher.load.data import Data
from launcher.load.document import Document, Location
from launcher.load.knowledge import RULE_ID
from launcher.load.schema import fill, filled
from launcher.model.load_check import LoadCheck, LoadFile
from launcher.model.problem import InputError, Problem

FOLDER = "configs/checks-load"
GROUPS = {"value", "values"}


def read_load_checks(data: Data) -> tuple[LoadCheck, ...]:
    """All of them, by topic and then as written. InputError with every Problem of every file."""
    problems = Collector()
    found: dict[str, LoadCheck] = {}
    for topic in data.names(FOLDER, holding=".yaml"):
        for check in problems.attempt(partial(_topic, topic, data)) or ():
            first = found.setdefault(check.id, check)
            if first is not check:
                what = f"load check `{check.id}` is here a second time, first at {first.source}"
                problems.keep([Problem(what, where=check.source, do="rename or remove one of the two")])
    problems.raise_any()
    return tuple(found.values())


def read_programs(check: LoadCheck, data: Data) -> Mapping[str, bytes]:
    """Name → content of each program that a check brings. InputError where one is not there."""
    found = {}
    for name in check.files:
        path = data.find(f"{FOLDER}/files/{name}")
        if path is None:
            what = f"check {check.id} needs `{name}`, which is not in {FOLDER}/files"
            raise InputError(Problem(what, check.source, do="put it there"))
        found[name] = data.content(path)
    return found


def _topic(topic: str, data: Data) -> tuple[LoadCheck, ...]:
    path = data.find(f"{FOLDER}/{topic}.yaml")
    assert path is not None, "names() lists what find() finds"
    document = data.document(path)
    assert isinstance(document.values, dict)
    own = {key: value for key, value in document.values.items() if key != "checks"}
    shared = {key: value for key, value in own.items() if key != "about"}
    filled(LoadFile, document, without="checks")
    written = document.values.get("checks")
    if not isinstance(written, dict):
        what = "`checks` is not a mapping of ids to checks"
        raise InputError(Problem(what, where=document.place(("checks",)), do="write `id: {title: ...}`"))
    problems = Collector()
    read = []
    for name, value in written.items():
        merged = {**shared, **value} if isinstance(value, dict) else value
        read.append(problems.attempt(partial(_check, topic, document, str(name), merged)))
    problems.raise_any()
    return tuple(check for check in read if check)


def _check(topic: str, document: Document, name: str, value: object) -> LoadCheck:
    def place(inside: Location) -> str:
        return document.place(("checks", name, *inside))

    check = fill(LoadCheck, value, place=place, given={"id": name, "topic": topic})
    problems = tuple(_problems(check))
    if problems:
        raise InputError(*problems)
    return check


def _problems(check: LoadCheck) -> Iterator[Problem]:
    def wrong(what: str, do: str) -> Problem:
        return Problem(f"check {check.id} {what}", where=check.source, do=do)

    if not RULE_ID.fullmatch(check.id):
        yield wrong("is not lower-case letters, digits and `-`", "rename it, for instance `rdma-write`")
    try:
        groups = set(re.compile(check.read).groupindex)
        if not check.counted and len(groups & GROUPS) != 1:
            yield wrong(
                "reads without one group `value` or `values`", "write (?P<value>...) around the figure"
            )
        re.compile(check.counted)
    except re.error as error:
        yield wrong(f"reads with no regular expression: {error}", "correct it")
    if check.hosts != "pairs" and (check.listens or check.crossed or check.both_ways):
        yield wrong("is not of pairs, and has `listens`, `crossed` or `both_ways`", "write `hosts: pairs`")
    if check.crossed and not check.parts:
        yield wrong("crosses no parts", "write `parts:`, words to cross")
    if None not in (check.warn, check.error) and _sooner(check):
        yield wrong("warns later than it calls it an error", "exchange `warn` and `error`")


def _sooner(check: LoadCheck) -> bool:
    """Is what is an error not yet worth a warning?"""
    assert check.warn is not None
    assert check.error is not None
    return check.warn < check.error if check.better == "higher" else check.warn > check.error
