"""configs/signatures and configs/logs.yaml → LogKnowledge, with every mistake in them; knows no log."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import partial

from launcher.load.collect import Collector
from launcher.load.data import Data
from launcher.load.knowledge import RELEASE, RULE_ID
from launcher.load.schema import filled, near
from launcher.model.history import release
from launcher.model.problem import InputError, Problem
from launcher.model.signature import ANY, LogForms, LogKnowledge, Signature

FORMS = "configs/logs.yaml"
PLACEHOLDER = re.compile(r"\{(\w+)\}")
ALWAYS_KNOWN = frozenset({"host", "unit", "instance"})


def read_log_knowledge(data: Data) -> LogKnowledge:
    """All that is known of log lines. InputError with every Problem of every file."""
    problems = Collector()
    forms = problems.attempt(partial(_forms, data))
    found: dict[str, Signature] = {}
    topics = data.names("configs/signatures", holding=".yaml")
    for topic in topics:
        for signature in _signatures(topic, data, problems):
            first = found.setdefault(signature.id, signature)
            if first is not signature:
                what = f"signature `{signature.id}` is here a second time, first at {first.source}"
                problems.keep([Problem(what, where=signature.source, do="rename or remove one of the two")])
    for signature in found.values():
        problems.keep(_cause_problems(signature, {ANY, *topics, *found}))
    problems.raise_any()
    assert forms is not None, "or it would have been a Problem"
    return LogKnowledge(tuple(found.values()), forms)


def _forms(data: Data) -> LogForms:
    path = data.find(FORMS)
    if path is None:
        raise InputError(Problem("no such file", where=FORMS, do="restore it: it comes with this program"))
    document = data.document(path)
    forms = filled(LogForms, document)
    problems = Collector()
    for word in ("info", "warning", "error", "noise", "secrets"):
        for n, pattern in enumerate(getattr(forms, word)):
            problems.keep(_pattern_problems(pattern, document.place((word, n))))
    problems.keep(_pattern_problems(forms.version, document.place(("version",))))
    problems.raise_any()
    return forms


def _signatures(topic: str, data: Data, problems: Collector) -> Iterator[Signature]:
    """The signatures of one file that nothing is wrong with."""
    path = data.find(f"configs/signatures/{topic}.yaml")
    assert path is not None, "names() lists what find() finds"
    document = problems.attempt(partial(data.document, path))
    if document is None or not isinstance(document.values, dict):
        return
    for name in document.values:
        signature = problems.attempt(partial(filled, Signature, document, (name,), id=name, topic=topic))
        wrong = tuple(_problems(signature)) if signature else ()
        problems.keep(wrong)
        if signature and not wrong:
            yield signature


def _problems(signature: Signature) -> Iterator[Problem]:
    where = signature.source
    if not RULE_ID.fullmatch(signature.id):
        what = f"signature `{signature.id}` is not lower-case letters, digits and `-`"
        yield Problem(what, where=where, do="rename it, for instance `kv-expired`")
    for word in ("since", "until"):
        text = getattr(signature, word)
        if text and not RELEASE.fullmatch(text):
            what = f"`{word}` of signature {signature.id} is `{text}`, expected a release"
            yield Problem(what, where=where, do='write it like "0.14.0"')
    if signature.since and signature.until and release(signature.since) >= release(signature.until):
        what = f"signature {signature.id} holds since {signature.since} until {signature.until}: never"
        yield Problem(what, where=where, do="`until` is the first release it no longer holds for")
    if signature.role == "consequence" and not signature.of:
        what = f"signature {signature.id} is a consequence `of` nothing"
        yield Problem(what, where=where, do=f"add `of:`, ids of others, topics or [{ANY}]")
    patterns = (*signature.patterns, *signature.beside, *signature.unless)
    patterns += (signature.over,) if signature.over else ()
    wrong = [p for pattern in patterns for p in _pattern_problems(pattern, where)]
    yield from wrong or _placeholder_problems(signature)


def _pattern_problems(pattern: str, where: str) -> Iterator[Problem]:
    try:
        found = re.compile(pattern)
    except re.error as error:
        yield Problem(f"`{pattern}` is no regular expression: {error}", where=where, do="correct it")
        return
    if found.search(""):
        yield Problem(f"`{pattern}` is found in every line", where=where, do="say more of the line in it")


def _placeholder_problems(signature: Signature) -> Iterator[Problem]:
    """A name that not every pattern has would stay a hole in some messages."""
    groups = [set(re.compile(p).groupindex) for p in signature.patterns]
    known = ALWAYS_KNOWN | set.intersection(*groups)
    confirm = " ".join(signature.confirm.run) if signature.confirm else ""
    for word, text in (("likely", signature.likely), ("do", signature.do), ("confirm", confirm)):
        for name in PLACEHOLDER.findall(text):
            if name not in known:
                what = f"`{word}` of signature {signature.id}: placeholder `{{{name}}}` names nothing"
                yield Problem(what, where=signature.source, do=near(name, known))


def _cause_problems(signature: Signature, known: Collection[str]) -> Iterator[Problem]:
    for name in signature.of:
        if name not in known:
            what = f"signature {signature.id} is said to come of `{name}`, which is no signature and no topic"
            yield Problem(what, where=signature.source, do=near(name, known))
