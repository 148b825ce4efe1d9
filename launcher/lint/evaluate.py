"""Rules × launches → findings, equal ones together; knows not where rules and launches come from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from launcher.lint import names
from launcher.lint.conditions import both, holds, subjects
from launcher.lint.quantities import QUANTITIES
from launcher.lint.reading import Basis, Reading
from launcher.lint.releases import within
from launcher.lint.values import Truth, UntoldError, Value, shown
from launcher.model.facts import Unknown
from launcher.model.finding import RuleFinding, State
from launcher.model.knowledge import Knowledge
from launcher.model.launch import Launch
from launcher.model.rule import Rule

PLACEHOLDER = re.compile(r"\{(?:(prefill|decode)\.)?([A-Za-z_][\w.-]*)\}")
"""`{heads_per_rank}`, `{max-num-seqs}`, `{VLLM_HOST_IP}`; of one side of a pair: `{prefill.kv_dtype}`."""
NAMES = 6
"""Names told of those that a file may give where it cannot be read; the rest is counted."""
SEVERITIES = ("error", "warning", "note")
STATES = ("fires", "depends", "open", "accepted")


def evaluate(knowledge: Knowledge, launches: Sequence[Launch]) -> tuple[RuleFinding, ...]:
    """What all rules say of all launches: errors first, then warnings and notes; of each, claims first.

    Launches with the same `instance` are one engine; each prefill launch is paired with each decode launch.
    """
    readings = [Reading(launch, knowledge, QUANTITIES) for launch in launches]
    groups: dict[str, list[tuple[Reading, ...]]] = {
        "launch": [(r,) for r in readings],
        "instance": list(_instances(readings)),
        "pair": list(_pairs(readings)),
    }
    # what is said of a name in general comes after what is said of this one in particular, and leaves it out
    rules = sorted(
        knowledge.rules, key=lambda rule: not names.QUANTITIES.keys().isdisjoint(subjects(rule.when))
    )
    found = (
        finding
        for rule in rules
        for group in groups[rule.scope]
        if (finding := judge(rule, group)) is not None
    )
    return tuple(sorted(_together(found), key=_order))


def judge(rule: Rule, group: Sequence[Reading]) -> RuleFinding | None:
    """What one rule says of one launch, instance or pair; None: nothing."""
    if rule.pools and not any(r.side in rule.pools for r in group):
        return None
    for reading in group:
        reading.gather()
    released = within(group[0].version, rule.since, rule.until)
    if released is False:
        return None
    truth = both(holds(condition, group) for condition in rule.when)
    if truth is False:
        return None
    basis = Basis()
    for reading in group:
        basis.add(reading.gather())
    state, because = _state(truth, released, basis)
    if state in ("fires", "depends"):
        for reading in group:
            reading.named.update(subjects(rule.when))
    accepted = next((why for r in group if (why := r.launch.accepted.get(rule.id))), "")
    if state == "fires" and accepted:
        state, because = "accepted", accepted
    return RuleFinding(
        rule=rule.id,
        state=state,
        severity=rule.severity,
        launches=tuple(dict.fromkeys(r.launch.name for r in group)),
        places=tuple(basis.places) or tuple(dict.fromkeys(r.launch.source for r in group)),
        what=filled(rule.what, group),
        why=filled(rule.why, group),
        fix=filled(rule.fix, group),
        known_from=rule.known_from,
        since=rule.since,
        until=rule.until,
        because=because,
    )


def _state(truth: Truth, released: Truth, basis: Basis) -> tuple[State, str]:
    """A claim; or one that depends on the release alone, or on what else is given beside what is written; or
    nothing that could be told."""
    if isinstance(truth, Unknown):
        return "open", truth.reason
    reasons = [released.reason] if isinstance(released, Unknown) else []
    if basis.hidden:
        reasons.append(_hidden(basis))
    if not reasons:
        return "fires", ""
    return "open" if basis.hidden and not basis.places else "depends", "; ".join(reasons)


def _hidden(basis: Basis) -> str:
    """Which names may be given out of sight, and by which words."""
    names = list(basis.hidden)
    told = " or ".join(names[:NAMES]) + (f" or {len(names) - NAMES} more" if len(names) > NAMES else "")
    by = ", ".join(dict.fromkeys(filter(None, basis.hidden.values())))
    return f"whether the file gives {told} where it cannot be read{f' ({by})' if by else ''}"


def filled(text: str, group: Sequence[Reading]) -> str:
    """A text with its placeholders replaced; what cannot be told is `?`."""

    def fill(found: re.Match[str]) -> str:
        side, name = found.groups()
        meant = [r for r in group if not side or r.side == side]
        return " and ".join(dict.fromkeys(_text(name, r) for r in meant)) or "?"

    return PLACEHOLDER.sub(fill, text)


def _text(name: str, reading: Reading) -> str:
    try:
        value: Value
        if name in QUANTITIES:
            value = reading.value(name)
        elif reading.launch.unit is not None and name in reading.launch.unit:
            value = reading.directive(name)
        elif name.isupper():
            value = reading.variable(name)
        else:
            value = reading.setting(name)
    except UntoldError:
        return "?"
    return shown(value)


def _instances(readings: Iterable[Reading]) -> Iterator[tuple[Reading, ...]]:
    together: dict[str, list[Reading]] = {}
    for number, reading in enumerate(readings):
        together.setdefault(reading.launch.instance or f"#{number}", []).append(reading)
    yield from map(tuple, together.values())


def _pairs(readings: Sequence[Reading]) -> Iterator[tuple[Reading, ...]]:
    """Of named instances each prefill with each decode. Others, as a text shows them one after another, with
    the nearest of the other side: such a text may show several services."""
    prefills = [i for i, r in enumerate(readings) if r.side == "prefill"]
    decodes = [i for i, r in enumerate(readings) if r.side == "decode"]
    for prefill, decode in product(prefills, decodes):
        named = readings[prefill].launch.instance and readings[decode].launch.instance
        # where both neighbours are as near, prefill comes before its decode
        near = decode == min(_mates(prefill, decodes, readings), key=lambda i: (abs(i - prefill), -i))
        near |= prefill == min(_mates(decode, prefills, readings), key=lambda i: (abs(i - decode), i))
        if named or near:
            yield readings[prefill], readings[decode]


def _mates(one: int, others: Sequence[int], readings: Sequence[Reading]) -> Sequence[int]:
    """Those of the other side that move KV by the same connector; all where none does."""
    connector = _text("connector", readings[one])
    return [i for i in others if _text("connector", readings[i]) == connector] or others


def _together(findings: Iterable[RuleFinding]) -> Iterator[RuleFinding]:
    """Each different finding once, with all launches and places of those like it."""
    alike: dict[tuple[str, ...], list[RuleFinding]] = {}
    for f in findings:
        alike.setdefault((f.rule, f.state, f.what, f.why, f.fix, f.because), []).append(f)
    for same in alike.values():
        launches = tuple(dict.fromkeys(name for f in same for name in f.launches))
        places = tuple(dict.fromkeys(place for f in same for place in f.places))
        yield replace(same[0], launches=launches, places=places)


def _order(finding: RuleFinding) -> tuple[int, int, str]:
    return STATES.index(finding.state), SEVERITIES.index(finding.severity), finding.rule
