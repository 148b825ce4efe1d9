"""explain: all there is to say about one thing of a deployment, by whatever name it is asked for."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from launcher.explain import things
from launcher.explain.fact import Topic
from launcher.explain.known import Known
from launcher.explain.ports import port_facts
from launcher.explain.rules import one_rule, quantity_facts
from launcher.explain.settings import known_names, setting_topics
from launcher.explain.units import directive_facts
from launcher.flows import lint
from launcher.flows.launches import launches_of
from launcher.load.data import Data, roots_of
from launcher.load.directives import read_directives
from launcher.model.problem import InputError, Problem
from launcher.model.wish import Wanted


def explain(wanted: Wanted, subject: str, *, data_dir: Path | None = None) -> tuple[Topic, ...]:
    """All there is to say about `subject`; InputError, with what was probably meant, if there is nothing."""
    return tell(known_of(wanted, data_dir=data_dir), subject)


def known_of(wanted: Wanted, *, data_dir: Path | None = None) -> Known:
    """A deployment with all that is known of its release; for several questions."""
    data = Data(roots_of(data_dir))
    return Known(wanted, launches_of(wanted), partial(lint.read, data), read_directives(data))


def tell(known: Known, subject: str) -> tuple[Topic, ...]:
    """A subject is an instance, a host, a port, a unit, a directive of units, a flag, a key of its JSON or a
    variable (set or not), a step's id, a rule's id, `router` or `front`."""
    topics = tuple(_topics(known, subject))
    if not topics:
        raise InputError(_unknown(subject, known))
    return topics


def _topics(known: Known, subject: str) -> Iterator[Topic]:
    """What is of this deployment has its name to itself; the rest is the field's, and may share one."""
    own = tuple(things.topics(subject, known))
    yield from own
    if own:
        return
    if subject.isdigit() and (facts := tuple(port_facts(int(subject), known))):
        yield Topic(f"port {subject}", facts)
    if facts := tuple(directive_facts(subject, known)):
        yield Topic(f"{subject}, a directive of units", facts)
    yield from setting_topics(subject, known)
    if facts := tuple(quantity_facts(subject, known)):
        yield Topic(f"{subject}, a quantity of rules", facts)
    for rule in known.knowledge.rules:
        if rule.id == subject:
            yield Topic(f"{rule.id}, a rule", tuple(one_rule(rule, known)))


def _unknown(subject: str, known: Known) -> Problem:
    here = things.names(known) | {rule.id for rule in known.knowledge.rules} | set(known.directives)
    near = difflib.get_close_matches(subject.lstrip("-"), here | known_names(known), n=3)
    return Problem(
        what=f"nothing here is called {subject!r}",
        why="a subject is an instance, host, port, unit, directive, flag, JSON key, variable, step or rule, "
        "`router` or `front`",
        do=f"did you mean {' or '.join(near)}?" if near else "see `dsv32-launch plan --offline` for names",
    )
