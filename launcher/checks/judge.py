"""Values and expectations → findings, host by host and over all hosts; knows no question."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from statistics import median
from typing import Literal

from launcher.checks.answers import NoAnswer, Text, Value, text_of, values_of
from launcher.checks.asked import Asked
from launcher.model.check import Check, CheckFinding, Expectation
from launcher.model.facts import Facts, Unknown

SHOWN = 4
"""Values of one finding that are written out; the rest is counted."""
LONGEST = 60


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one check ended on one host."""

    asked: Asked
    state: Literal["ok", "absent", "wrong", "open"]
    """absent: what it is about is not there, and need not be."""
    what: str = ""
    """wrong: found and expected; open: why it cannot be told."""
    values: tuple[Value, ...] = ()


def findings_of(
    asked: Sequence[Asked], facts: Mapping[str, Facts], silent: Collection[str] = ()
) -> tuple[CheckFinding, ...]:
    """What is wrong, in the order of the checks, and what cannot be told: of one fault, the rest.

    `silent`: hosts of which nothing is to be told, beside those that were asked and gave no answer.
    """
    silent = {*silent, *({a.host for a in asked} - facts.keys())}
    first = [outcome_of(a, facts[a.host], silent) for a in asked if a.host in facts]
    by_check: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in waiting_for_needs(alike(first)):
        by_check[outcome.asked.check.id].append(outcome)
    return tuple(finding for some in by_check.values() for finding in (*_each_host(some), *across(some)))


def outcome_of(asked: Asked, facts: Facts, silent: Collection[str] = ()) -> Outcome:
    """One check on one host; of `silent` hosts, which do not answer us, their peers say nothing new."""
    if any(_active(facts[probe]) for probe in asked.runs):
        return Outcome(asked, "ok")
    text = text_of(asked, facts)
    if asked.question.peers and isinstance(text, str):
        lines = text.splitlines(keepends=True)
        text = "".join(line for line in lines if re.split("[: ]", line, maxsplit=1)[0] not in silent)
    return judged(asked, text)


def judged(asked: Asked, text: Text) -> Outcome:
    """An answer's text, against what was expected."""
    if isinstance(text, Unknown):
        return Outcome(asked, "open", text.reason)
    if isinstance(text, NoAnswer):
        return _wrong(asked, f"no answer within {text.within_s} s", ())
    expect = asked.expect
    values = values_of(asked, text) if text is not None else ()
    if text is None or not (values or expect.none or expect.count == "0"):
        if asked.check.missing == "fine":
            return Outcome(asked, "absent")
        return _wrong(asked, "not there" if text is None else "nothing of it there", ())
    if expect.none:
        return _wrong(asked, _shown(values), values) if values else Outcome(asked, "ok")
    if expect.count is not None or expect.count_at_least is not None:
        least, most = expect.count_at_least or expect.count or "0", expect.count or len(values)
        right = int(least) <= len(values) <= int(most)
        return Outcome(asked, "ok", "", values) if right else _wrong(asked, str(len(values)), values)
    bad = [value for value in values if not holds(value.text, expect)]
    return _wrong(asked, _shown(bad), values) if bad else Outcome(asked, "ok", "", values)


def _wrong(asked: Asked, found: str, values: tuple[Value, ...]) -> Outcome:
    of = f"{asked.subject}: " if asked.subject else ""
    return Outcome(asked, "wrong", f"{of}{found}, expected {expected(asked.expect)}", values)


def alike(outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """The same, with those judged that are to be like what another check reads on their host."""
    known = list(outcomes)
    read = {(o.asked.host, o.asked.check.id): o.values for o in known}
    for o in known:
        other = read.get((o.asked.host, o.asked.expect.like), ()) if o.asked.expect.like else ()
        if not other or o.state != "ok":
            yield o
            continue
        expect = Expectation(equals=other[0].text)
        bad = [value for value in o.values if not holds(value.text, expect)]
        yield _wrong(replace(o.asked, expect=expect), _shown(bad), o.values) if bad else o


def holds(text: str, expect: Expectation) -> bool:
    """Is one value as expected? What is no number is neither enough nor too little of anything."""
    if expect.equals is not None:
        return text == expect.equals
    if expect.one_of:
        return text in expect.one_of
    if expect.release_at_least is not None:
        return not _earlier(text, expect.release_at_least)
    if expect.matches is not None:
        return re.search(expect.matches, text, re.MULTILINE) is not None
    if expect.lacks is not None:
        return re.search(expect.lacks, text, re.MULTILINE) is None
    try:
        return (expect.at_least is None or float(text) >= float(expect.at_least)) and (
            expect.at_most is None or float(text) <= float(expect.at_most)
        )
    except ValueError:
        return False


def expected(expect: Expectation) -> str:
    """An expectation, in words."""
    told: tuple[tuple[str | None, str], ...] = (
        (expect.equals, "{}"),
        (" or ".join(word or "nothing" for word in expect.one_of) or None, "{}"),
        (expect.at_least, "at least {}"),
        (expect.at_most, "at most {}"),
        (expect.release_at_least, "{} or newer"),
        (expect.matches, "`{}` in it"),
        (expect.lacks, "no `{}`"),
        (expect.count, "{}"),
        (expect.count_at_least, "at least {}"),
        ("none" if expect.none else None, "{}"),
    )
    return next((form.format(text) for text, form in told if text is not None), "an answer")


def waiting_for_needs(outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """The same, with those open whose needs do not hold on their host."""
    known = list(outcomes)
    states: dict[tuple[str, str], str] = {}
    for o in known:
        key = (o.asked.host, o.asked.check.id)
        if o.state in ("wrong", "open") or key not in states:
            states[key] = o.state
    checks = {o.asked.check.id: o.asked.check for o in known}
    for o in known:
        need = _unmet(o.asked.check, o.asked.host, states, checks)
        if not need:
            yield o
        elif states[o.asked.host, need] == "absent":
            yield Outcome(o.asked, "absent")
        else:
            yield Outcome(o.asked, "open", f"{need} does not hold")


def _unmet(
    check: Check, host: str, states: Mapping[tuple[str, str], str], checks: Mapping[str, Check]
) -> str:
    """The first cause among what a check needs; empty if all of it holds."""
    for need in check.needs:
        if need in checks:
            deeper = _unmet(checks[need], host, states, checks)
            if deeper or states.get((host, need), "ok") != "ok":
                return deeper or need
    return ""


def _each_host(outcomes: Iterable[Outcome]) -> Iterator[CheckFinding]:
    """What is wrong or open on single hosts, the same of several hosts together."""
    together: dict[tuple[str, str, str], dict[str, Asked]] = defaultdict(dict)
    for o in outcomes:
        if o.state in ("wrong", "open"):
            together[o.state, o.what, o.asked.remedy].setdefault(o.asked.host, o.asked)
    for (state, what, remedy), asked in together.items():
        check = next(iter(asked.values())).check
        yield CheckFinding(check, "wrong" if state == "wrong" else "open", tuple(asked), what, remedy)


def across(outcomes: Sequence[Outcome]) -> Iterator[CheckFinding]:
    """What hosts disagree on, or share and must not."""
    told = [o for o in outcomes if o.state == "ok" and o.values]
    if not told or not (check := told[0].asked.check).across:
        return
    if check.by is not None:
        yield from _far(told, check, check.by)
        return
    groups: dict[str, list[str]] = defaultdict(list)
    texts = {o.asked.host: {v.text if check.column else str(v) for v in o.values} for o in told}
    shared = set.intersection(*texts.values()) if check.across == "same" else set()
    for host, own in texts.items():
        words = sorted(own - shared)
        for text in words if check.across == "unique" else [", ".join(words) or "without"]:
            groups[text].append(host)
    answers = tuple(sorted(((t, tuple(h)) for t, h in groups.items()), key=lambda g: -len(g[1])))
    if check.across == "unique":
        answers = tuple(group for group in answers if len(group[1]) > 1)
    elif len(answers) == 1:
        return
    if answers:
        most = answers[0][1] if check.across == "same" and 2 * len(answers[0][1]) > len(told) else ()
        odd = tuple(dict.fromkeys(h for _, hosts in answers if hosts != most for h in hosts))
        what = "not the same everywhere" if check.across == "same" else "not one of a kind"
        shown = tuple((_short(text), hosts) for text, hosts in answers)
        yield CheckFinding(check, "wrong", odd, what, told[0].asked.remedy, shown, majority=bool(most))


def _far(told: Sequence[Outcome], check: Check, by: float) -> Iterator[CheckFinding]:
    """Hosts with a number far above the median of all."""
    numbers = {o.asked.host: [v for v in o.values if re.fullmatch(r"[\d.]+", v.text)] for o in told}
    usual = median([float(value.text) for own in numbers.values() for value in own] or [0.0])
    for o in told:
        far = [value for value in numbers[o.asked.host] if float(value.text) > usual + by]
        if far:
            what = f"{_shown(far)}, median of all hosts {usual:g}"
            yield CheckFinding(check, "wrong", (o.asked.host,), what, o.asked.remedy)


def _shown(values: Sequence[Value]) -> str:
    words = list(dict.fromkeys(_short(str(value)) or "empty" for value in values))
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return ", ".join(words[:SHOWN]) + more


def _short(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def _earlier(text: str, least: str) -> bool:
    """Does a dotted version come before another?"""
    have, want = ([int(n) for n in re.findall(r"\d+", version)] for version in (text, least))
    first = next(((a, b) for a, b in zip_longest(have, want, fillvalue=0) if a != b), (0, 0))
    return not have or first[0] < first[1]


def _active(answer: object) -> bool:
    """Does a unit run, or start?"""
    return isinstance(answer, Mapping) and answer["active"] in ("active", "activating", "deactivating")
