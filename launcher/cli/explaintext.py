"""explain_text: facts as a person reads them, values first; knows no colours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from launcher.cli.findingtext import launches
from launcher.explain.fact import Fact, Topic

WIDE = 72
"""Columns that values share; longer ones stand out."""
DIRECTIVE = re.compile(r"[A-Z]\w*")
"""Of a unit; variables look alike."""
PLAIN = ("value", "default", "port")
HERE = {
    "fires": "fires here",
    "accepted": "fires here, which is accepted",
    "depends": "depends on more than is known",
    "open": "cannot be told",
    "quiet": "does not fire here",
    "other release": "is about other releases",
}
"""State of one rule, in words."""
STATES = {
    "fires": "rules that fire here",
    "accepted": "rules that fire here, which is accepted",
    "depends": "rules that depend on more than is known",
    "open": "rules of which it cannot be told",
    "quiet": "rules that look at it and do not fire here",
    "other release": "rules of other releases that look at it",
}
"""The same of several, what matters most first."""
SILENT = ("quiet", "other release")
"""States that come after what the setting does."""
LONGEST = 240
"""Letters of a value that are shown."""


def explain_text(topics: Iterable[Topic]) -> str:
    """Topics one below the other."""
    return "\n\n".join("\n".join((topic.title, *_rows(topic))) for topic in topics)


def _rows(topic: Topic) -> Iterator[str]:
    yield from (
        f"  {HERE[f.value]}, {f.severity}: {f.about}{_in_brackets(f)}"
        for f in topic.facts
        if f.kind == "finding"
    )
    plain = [fact for fact in topic.facts if fact.kind in PLAIN]
    told = [(_left(fact), _of(fact), _source(fact)) for fact in plain]
    widths = [min(max((len(row[i].partition("\n")[0]) for row in told), default=0), WIDE) for i in (0, 1)]
    for left, of, source in told:
        between = f"  {of:<{widths[1]}}" if widths[1] else ""
        first, *more = left.splitlines()
        yield f"  {first:<{widths[0]}}{between}  {source}".rstrip()
        yield from (f"    {line}".rstrip() for line in more)
    rules = [fact for fact in topic.facts if fact.kind == "rule"]
    yield from _rules([fact for fact in rules if fact.value not in SILENT])
    yield from (_sentence(f) for f in topic.facts if f.kind not in (*PLAIN, "finding", "rule"))
    yield from _rules([fact for fact in rules if fact.value in SILENT])


def _rules(facts: Sequence[Fact]) -> Iterator[str]:
    """Each state under its heading."""
    for state, heading in STATES.items():
        here = [fact for fact in facts if fact.value == state]
        if here:
            yield f"  {heading}"
        yield from (f"    {f.severity:<7} {f.name}: {f.about}{_in_brackets(f)}" for f in here)


def _left(fact: Fact) -> str:
    value = fact.value
    if len(value) > LONGEST and "\n" not in value:
        value = f"{value[:LONGEST]} …"
    if "\n" in value:
        return "\n".join((f"{fact.name} {len(value.splitlines())} lines", value))
    sign = "=" if fact.kind == "value" and DIRECTIVE.fullmatch(fact.name) else " "
    return sign.join(filter(None, (fact.name, value)))


def _of(fact: Fact) -> str:
    return launches(fact.of) if fact.of else ""


def _source(fact: Fact) -> str:
    if fact.kind == "port":
        return f"{fact.source}  {fact.about}".strip()
    return fact.source


def _sentence(fact: Fact) -> str:
    value = f"{fact.name}: {fact.value}" if fact.kind == "peer" else fact.value
    source = ", ".join(filter(None, (fact.source, fact.about)))
    return f"  {fact.kind:<8} {value}{_in_brackets(fact)}" + (f"  [{source}]" if source else "")


def _in_brackets(fact: Fact) -> str:
    return f" ({_of(fact)})" if fact.of else ""
