"""configs/rules, history and snapshots → Knowledge, with every mistake in a rule; knows no launch."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from launcher.load.collect import Collector
from launcher.load.data import Data
from launcher.load.document import Document
from launcher.load.engines import read_engines
from launcher.load.history import read_history
from launcher.load.schema import filled, near
from launcher.model.history import History, release
from launcher.model.knowledge import Knowledge
from launcher.model.problem import Problem
from launcher.model.rule import Condition, Operand, Reference, Rule
from launcher.model.snapshot import Snapshot

RULE_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
RELEASE = re.compile(r"[0-9]+\.[0-9]+(\.[0-9]+)?")
PLACEHOLDER = re.compile(r"\{(?:(?:prefill|decode)\.)?([A-Za-z_][\w.-]*)\}")
NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]+)?")
VLLM = "VLLM_"
OF_NUMBERS = ("above", "below", "multiple_of", "no_multiple_of")
TESTS = ("equals", "unlike", *OF_NUMBERS)
"""Fields of a Condition that hold an operand."""


@dataclass(frozen=True, slots=True)
class Names:
    """Everything that a rule may name."""

    quantities: Collection[str]
    settings: Collection[str]
    """Flags; keys of their JSON, dotted, where the history tells of them."""
    variables: Collection[str]


def read_knowledge(data: Data, *, quantities: Collection[str]) -> Knowledge:
    """All of it. InputError with every Problem of every file.

    `quantities`: the names that a rule may use as `value`.
    """
    problems = Collector()
    history = problems.attempt(lambda: read_history(data))
    snapshots = problems.attempt(lambda: read_snapshots(data))
    if history is None or snapshots is None:
        problems.raise_any()  # names of rules are looked up in both
    assert history is not None
    assert snapshots is not None
    rules = read_rules(data, names_of(history, snapshots, quantities), problems)
    problems.raise_any()
    return Knowledge(history, rules, snapshots)


def read_snapshots(data: Data) -> Mapping[str, Snapshot]:
    """Release → what it accepts, of every engine that has a snapshot, or inherits one."""
    snapshots = (engine.snapshot for engine in read_engines(data).values())
    return {snapshot.version: snapshot for snapshot in snapshots if snapshot is not None}


def names_of(history: History, snapshots: Mapping[str, Snapshot], quantities: Collection[str]) -> Names:
    """What there is to name."""
    settings = {"model", *history.settings, *(name.partition(".")[0] for name in history.settings)}
    variables = set(history.variables)
    for snapshot in snapshots.values():
        settings |= snapshot.options.keys()
        variables |= set(snapshot.variables)
    return Names(quantities, settings, variables)


def read_rules(data: Data, names: Names, problems: Collector) -> tuple[Rule, ...]:
    """The rules of every file, by file and then as written; each wrong one is left out, and told of."""
    found: dict[str, Rule] = {}
    for topic in data.names("configs/rules", holding=".yaml"):
        path = data.find(f"configs/rules/{topic}.yaml")
        assert path is not None
        document = problems.attempt(partial(data.document, path))
        for rule in _rules(document, names, problems) if document else ():
            first = found.setdefault(rule.id, rule)
            if first is not rule:
                what = f"rule `{rule.id}` is here a second time, first at {first.source}"
                problems.keep([Problem(what, where=rule.source, do="rename or remove one of the two")])
    return tuple(found.values())


def _rules(document: Document, names: Names, problems: Collector) -> Iterator[Rule]:
    """The rules of one file that nothing is wrong with."""
    for name in document.values if isinstance(document.values, dict) else ():
        rule = problems.attempt(partial(filled, Rule, document, (name,), id=name))
        wrong = tuple(_problems(rule, names)) if rule else ()
        problems.keep(wrong)
        if rule and not wrong:
            yield rule


def _problems(rule: Rule, names: Names) -> Iterator[Problem]:
    if not RULE_ID.fullmatch(rule.id):
        what = f"rule `{rule.id}` is not lower-case letters, digits and `-`"
        yield Problem(what, where=rule.source, do="rename it, for instance `tp-pads-heads`")
    for word in ("since", "until"):
        text = getattr(rule, word)
        if text and not RELEASE.fullmatch(text):
            what = f"`{word}` of rule {rule.id} is `{text}`, expected a release"
            yield Problem(what, where=rule.source, do='write it like "0.14.0"')
    if rule.since and rule.until and release(rule.since) >= release(rule.until):
        what = f"rule {rule.id} holds since {rule.since} until {rule.until}: for no release"
        yield Problem(what, where=rule.source, do="`until` is the first release it no longer holds for")
    for condition in _every(rule.when):
        yield from _condition_problems(condition, rule, names)
    directives = {condition.unit for condition in _every(rule.when)}
    for word in ("what", "why", "fix"):
        for name in PLACEHOLDER.findall(getattr(rule, word)):
            if name not in directives and not _is_known(name, names):
                what = f"`{word}` of rule {rule.id} has a placeholder `{{{name}}}`, which names nothing"
                known = (*names.quantities, *names.settings)
                yield Problem(what, where=rule.source, do=near(name, known))


def _every(conditions: Iterable[Condition]) -> Iterator[Condition]:
    """Conditions, and those that they combine."""
    for condition in conditions:
        yield condition
        yield from _every((*condition.any, *condition.none))


def _condition_problems(condition: Condition, rule: Rule, names: Names) -> Iterator[Problem]:
    inner = (*condition.any, *condition.none)
    subjects = [s for s in (condition.setting, condition.variable, condition.value, condition.unit) if s]
    if len(subjects) != (0 if inner else 1):
        what = f"a condition of rule {rule.id} has {len(subjects)} subjects"
        do = "write one of `setting`, `variable`, `value`, `unit`, or `any` or `none` alone"
        yield Problem(what, where=condition.source, do=do)
    if not inner and not _has_test(condition):
        what = f"a condition of rule {rule.id} tests nothing"
        yield Problem(what, where=condition.source, do="add `equals`, `above`, `given` or another test")
    if condition.of and rule.scope != "pair":
        what = f"a condition of rule {rule.id} is `of` a side, but its scope is {rule.scope}"
        yield Problem(what, where=condition.source, do="write `scope: pair`, or `pools` for the whole rule")
    if condition.apart is not None and rule.scope == "launch":
        what = f"a condition of rule {rule.id} compares launches, but its scope is one launch"
        yield Problem(what, where=condition.source, do="write `scope: pair` or `scope: instance`")
    try:
        re.compile(condition.matches)
    except re.error as error:
        what = f"`{condition.matches}` of rule {rule.id} is no regular expression: {error}"
        yield Problem(what, where=condition.source, do="correct it")
    yield from _name_problems(condition, rule, names, condition.source)
    for test in TESTS:
        yield from _operand_problems(test, condition, rule, names)


def _operand_problems(test: str, condition: Condition, rule: Rule, names: Names) -> Iterator[Problem]:
    operand: Operand | None = getattr(condition, test)
    wrong = ""
    if isinstance(operand, Reference):
        yield from _name_problems(operand, rule, names, condition.source)
        subjects = [s for s in (operand.setting, operand.variable, operand.value) if s]
        wrong = "" if len(subjects) == 1 else f"names {len(subjects)} subjects, expected one"
        if operand.of and rule.scope != "pair":
            wrong = f"is `of` a side, but its scope is {rule.scope}"
    elif test in OF_NUMBERS and operand is not None:
        wrong = "" if NUMBER.fullmatch(str(operand)) else "is no number"
    elif operand == ():
        wrong = "is an empty list"
    if wrong:
        what = f"`{test}` in a condition of rule {rule.id} {wrong}"
        yield Problem(what, where=condition.source, do="see docs/rules.md for what it takes")


def _name_problems(subject: Condition | Reference, rule: Rule, names: Names, where: str) -> Iterator[Problem]:
    if subject.value and subject.value not in names.quantities:
        what = f"rule {rule.id} looks at an unknown quantity `{subject.value}`"
        yield Problem(what, where=where, do=near(subject.value, names.quantities))
    if subject.setting and not _is_setting(subject.setting, names):
        what = f"rule {rule.id} looks at an unknown setting `{subject.setting}`"
        yield Problem(what, where=where, do=near(subject.setting, names.settings))
    if subject.variable and not _is_variable(subject.variable, names):
        what = f"rule {rule.id} looks at an unknown variable `{subject.variable}`"
        yield Problem(what, where=where, do=near(subject.variable, names.variables))


def _has_test(condition: Condition) -> bool:
    tests = (getattr(condition, test) for test in ("given", "apart", *TESTS))
    return bool(condition.matches) or any(test is not None for test in tests)


def _is_known(name: str, names: Names) -> bool:
    return (
        name in names.quantities or _is_setting(name, names) or (name.isupper() and _is_variable(name, names))
    )


def _is_setting(name: str, names: Names) -> bool:
    """Below a flag that takes JSON any key may be named: rules are about keys that no release has, too."""
    return name in names.settings or name.partition(".")[0] in names.settings


def _is_variable(name: str, names: Names) -> bool:
    """Only vLLM's own are all known; libraries have more than any list."""
    return name in names.variables or not name.startswith(VLLM)
