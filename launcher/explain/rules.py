"""Which rules look at a name, themselves or through a quantity, and what they say of the launches here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from launcher.explain.fact import Fact, together
from launcher.explain.known import Known
from launcher.lint import names
from launcher.lint.quantities import QUANTITIES
from launcher.lint.reading import Reading
from launcher.lint.releases import span, within
from launcher.lint.values import UntoldError, shown
from launcher.model.finding import RuleFinding
from launcher.model.launch import Launch
from launcher.model.rule import Condition, Reference, Rule

ORDER = ("fires", "accepted", "depends", "open", "quiet", "other release")


def rule_facts(subjects: Collection[str], known: Known) -> Iterator[Fact]:
    """The rules that look at one of these names, what they find coming first."""
    found: list[Fact] = []
    for rule, looked, general in _watching(known):
        said = known.findings.get(rule.id, ())
        if general:
            said = tuple(f for f in said if any(subject in f.what for subject in subjects))
        if (said and general) or any(_meets(name, subject) for name in looked for subject in subjects):
            found.extend(_facts(rule, said, known.version))
    yield from sorted(found, key=lambda f: ORDER.index(f.value))


@lru_cache(maxsize=1)
def _watching(known: Known) -> tuple[tuple[Rule, frozenset[str], bool], ...]:
    """Each rule, the names that it looks at, itself or through a quantity, and whether it speaks of names in
    general."""
    found = []
    for rule in known.knowledge.rules:
        own = frozenset(looks_at(rule.when))
        general = not own.isdisjoint(names.QUANTITIES)
        found.append((rule, own.union(*(known.reads.get(subject, ()) for subject in own)), general))
    return tuple(found)


def one_rule(rule: Rule, known: Known) -> Iterator[Fact]:
    """All of one rule: what it says here, what it is about, and the values that it looks at."""
    said = known.findings.get(rule.id, ())
    yield from (replace(fact, kind="finding") for fact in _facts(rule, said, known.version))
    yield Fact("does", value=rule.what, source=rule.source)
    yield Fact("why", value=rule.why)
    yield Fact("fix", value=rule.fix)
    yield Fact("release", value=f"vLLM: {span(rule.since, rule.until)}", about=rule.known_from)
    yield from together(_looked(rule, known))


def quantity_facts(name: str, known: Known) -> Iterator[Fact]:
    """A quantity that rules speak of (`heads_per_rank`), as each launch has it."""
    if name not in QUANTITIES or not known.launches:
        return
    yield from together(_quantity(name, launch, known) for launch in known.launches)
    about = (QUANTITIES[name].__doc__ or "").partition("\n\n")[0]
    yield Fact("does", value=" ".join(about.split()) or "A number that rules compare.")
    yield from rule_facts((name,), known)


def _quantity(name: str, launch: Launch, known: Known) -> Fact:
    reading = Reading(launch, known.knowledge, QUANTITIES)
    value = value_of(name, reading)
    return Fact("value", name, value, (launch.name,), " + ".join(reading.gather().places))


def looks_at(conditions: Iterable[Condition]) -> Iterator[str]:
    """Every setting, variable, quantity and directive that conditions look at or compare with."""
    for condition in conditions:
        yield from _names(condition)
        if condition.unit:
            yield condition.unit
        for operand in (condition.equals, condition.unlike, condition.above, condition.below):
            yield from _names(operand) if isinstance(operand, Reference) else ()
        for operand in (condition.multiple_of, condition.no_multiple_of):
            yield from _names(operand) if isinstance(operand, Reference) else ()
        yield from looks_at((*condition.any, *condition.none))


def _names(subject: Condition | Reference) -> Iterator[str]:
    yield from filter(None, (subject.setting, subject.variable, subject.value))


def _meets(name: str, subject: str) -> bool:
    """Is one the other, or a key within it?"""
    return name == subject or name.startswith(f"{subject}.") or subject.startswith(f"{name}.")


def _facts(rule: Rule, said: Iterable[RuleFinding], version: str) -> Iterator[Fact]:
    for f in said:
        about = f"{f.what} ({f.because})" if f.because else f.what
        yield Fact("rule", rule.id, f.state, f.launches, rule.source, about, rule.severity)
    if not said:
        state = "quiet" if within(version, rule.since, rule.until) else "other release"
        yield Fact("rule", rule.id, state, (), rule.source, rule.what, rule.severity)


def _looked(rule: Rule, known: Known) -> Iterator[Fact]:
    """The values that a rule looks at, as each launch has them."""
    for launch in known.launches:
        if rule.pools and launch.pool not in rule.pools:
            continue
        yield from (_quantity(name, launch, known) for name in dict.fromkeys(looks_at(rule.when)))


def value_of(name: str, reading: Reading) -> str:
    """A setting, variable, quantity or directive in words."""
    unit = reading.launch.unit or {}
    try:
        if name in QUANTITIES:
            value = reading.value(name)
        elif name in unit:
            value = unit[name]
        elif name.isupper():
            value = reading.variable(name)
        else:
            value = reading.setting(name)
    except UntoldError as error:
        return f"cannot be told, not knowing {error.unknown.reason}"
    return "absent" if value is None else shown(value)
