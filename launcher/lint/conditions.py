"""Conditions over readings: true, false, or not to be told; knows no rule's words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TypeAlias

from launcher.lint.reading import Reading
from launcher.lint.values import Truth, UntoldError, Value, number, same, shown
from launcher.model.facts import Unknown
from launcher.model.rule import Condition, Operand, Reference

Comparison: TypeAlias = "Callable[[Value, list[Value]], bool]"


def holds(condition: Condition, group: Sequence[Reading]) -> Truth:
    """Does a condition hold for these launches: one, those of an instance, or a prefill and a decode?"""
    if condition.any or condition.none:
        return both(_combined(condition, group))
    meant = [r for r in group if not condition.of or r.side == condition.of]
    if condition.apart is not None:
        return _apart(condition, group)
    return either(_alone(condition, reading, group) for reading in meant)


def both(truths: Iterable[Truth]) -> Truth:
    """All are true; false if one is, whatever cannot be told of the others."""
    unknown: Unknown | None = None
    for truth in truths:
        if truth is False:
            return False
        if isinstance(truth, Unknown):
            unknown = unknown or truth
    return unknown or True


def either(truths: Iterable[Truth]) -> Truth:
    """One is true, whatever cannot be told of the others."""
    unknown: Unknown | None = None
    for truth in truths:
        if truth is True:
            return True
        if isinstance(truth, Unknown):
            unknown = unknown or truth
    return unknown or False


def opposite(truth: Truth) -> Truth:
    """True for false; what cannot be told stays so."""
    return truth if isinstance(truth, Unknown) else not truth


def subjects(conditions: Iterable[Condition]) -> Iterator[str]:
    """Names of the settings, variables and quantities that conditions look at."""
    for condition in conditions:
        yield from filter(None, (condition.setting, condition.variable, condition.value))
        yield from subjects((*condition.any, *condition.none))


def look(subject: Condition | Reference, reading: Reading) -> Value:
    """The value of a subject; UntoldError where it cannot be told."""
    if subject.setting:
        return reading.setting(subject.setting)
    if subject.variable:
        return reading.variable(subject.variable)
    if subject.value:
        return reading.value(subject.value)
    assert isinstance(subject, Condition)
    return reading.directive(subject.unit)


def _combined(condition: Condition, group: Sequence[Reading]) -> Iterator[Truth]:
    if condition.any:
        yield either(holds(inner, group) for inner in condition.any)
    for inner in condition.none:
        yield opposite(holds(inner, group))


def _apart(condition: Condition, group: Sequence[Reading]) -> Truth:
    try:
        values = [look(condition, reading) for reading in group]
    except UntoldError as error:
        return error.unknown
    differ = any(not same(value, values[0]) for value in values)
    return differ is condition.apart


def _alone(condition: Condition, reading: Reading, group: Sequence[Reading]) -> Truth:
    if condition.unit and reading.launch.unit is None:
        return False
    try:
        if condition.given is not None and _given(condition, reading) is not condition.given:
            return False
        if condition.given is not None and not _tested(condition):
            return True
        return both(_tests(condition, look(condition, reading), reading, group))
    except UntoldError as error:
        return error.unknown


def _given(condition: Condition, reading: Reading) -> bool:
    if condition.setting:
        return reading.given(condition.setting) is not None
    if condition.variable:
        return reading.given_variable(condition.variable) is not None
    return look(condition, reading) is not None


def _tested(condition: Condition) -> bool:
    return bool(condition.matches) or any(operand is not None for operand, _ in _comparisons(condition))


def _comparisons(condition: Condition) -> tuple[tuple[Operand | None, Comparison], ...]:
    return (
        (condition.equals, _equal),
        (condition.unlike, _unlike),
        (condition.above, _above),
        (condition.below, _below),
        (condition.multiple_of, _multiple),
        (condition.no_multiple_of, _no_multiple),
    )


def _tests(condition: Condition, value: Value, reading: Reading, group: Sequence[Reading]) -> Iterator[Truth]:
    if condition.matches:
        yield value is not None and _pattern(condition.matches).search(shown(value)) is not None
    for operand, compare in _comparisons(condition):
        if operand is None:
            continue
        try:
            yield compare(value, _operands(operand, reading, group))
        except UntoldError as error:
            yield error.unknown


def _operands(operand: Operand, reading: Reading, group: Sequence[Reading]) -> list[Value]:
    """What to compare with; the operand of a pair may be of the other side."""
    if isinstance(operand, str):
        return [operand]
    if isinstance(operand, tuple):
        return list(operand)
    other = next((r for r in group if operand.of and r.side == operand.of), reading)
    return [look(operand, other)]


def _equal(value: Value, operands: list[Value]) -> bool:
    return value is not None and any(same(value, o) for o in operands if o is not None)


def _unlike(value: Value, operands: list[Value]) -> bool:
    return not _equal(value, operands)


def _above(value: Value, operands: list[Value]) -> bool:
    left, right = number(value), number(operands[0])
    return left is not None and right is not None and left > right


def _below(value: Value, operands: list[Value]) -> bool:
    left, right = number(value), number(operands[0])
    return left is not None and right is not None and left < right


def _multiple(value: Value, operands: list[Value]) -> bool:
    left, right = number(value), number(operands[0])
    return left is not None and bool(right) and left % (right or 1) == 0


def _no_multiple(value: Value, operands: list[Value]) -> bool:
    left, right = number(value), number(operands[0])
    return left is not None and bool(right) and left % (right or 1) != 0


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)
