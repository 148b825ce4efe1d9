"""Lines of rendered units, each with the line of the template that made it and the reason above that one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from launcher.explain.fact import Fact, together
from launcher.explain.known import Known
from launcher.explain.rules import rule_facts
from launcher.model.profile import Setting
from launcher.model.role import Role, RoleStep, Step
from launcher.model.wish import Wanted
from launcher.steps import turns, unit

CONTINUED = re.compile(r"\\\n\s*")
DYNAMIC = re.compile(r"\{[{%]")
RECORDS = "Records the release of the unit that is started, so that the next plan knows what runs."


@dataclass(frozen=True, slots=True)
class UnitLine:
    """`Restart=no` of a rendered unit."""

    section: str
    directive: str
    value: str
    source: str
    """The line of the template; for a line that the launcher adds, of the step."""
    why: str
    """The comment above it there."""


def unit_steps(wanted: Wanted) -> Iterator[Step]:
    """Each unit on each host that has a text of ours."""
    for step in (s for steps in wanted.steps.values() for s in steps):
        yield from (replace(step, want=u) for u in turns.units_of(step.want) if unit.unit_file(u))


def lines_of(step: Step, wanted: Wanted) -> tuple[UnitLine, ...]:
    """The lines of a unit as it is written on its host."""
    file = unit.unit_file(step.want)
    assert file is not None
    written = tuple(_template_lines(role_of(step, wanted), as_written(step, wanted)))
    return tuple(_line(*parts, step=step, written=written) for parts in _parts(str(file.content)))


@lru_cache(maxsize=1)
def every_line(known: Known) -> tuple[tuple[Step, UnitLine], ...]:
    """The lines of all units on all hosts, each with its unit."""
    wanted = known.wanted
    return tuple((step, line) for step in unit_steps(wanted) for line in lines_of(step, wanted))


def directive_facts(name: str, known: Known) -> Iterator[Fact]:
    """A directive in all units; what systemd does with it, and why ours is as it is."""
    found = [
        (line, f"{step.want.name} on {step.host}")
        for step, line in every_line(known)
        if line.directive == name
    ]
    if not found and name not in known.directives:
        return
    yield from together(Fact("value", name, line.value, (of,), line.source) for line, of in found)
    if not found:
        yield Fact("default", name, "not set in any unit")
    if name in known.directives:
        does = known.directives[name]
        yield Fact("does", name, str(does.value), source=does.source)
    yield from together(Fact("why", name, line.why, (), line.source) for line, _ in found if line.why)
    yield from rule_facts((name,), known)


def _parts(text: str) -> Iterator[tuple[str, str, str]]:
    """Section, directive and value of each line of a unit's text."""
    section = ""
    for line in CONTINUED.sub(" ", text).splitlines():
        name, sign, value = line.partition("=")
        if line.startswith("["):
            section = line
        elif sign and not line.startswith(("#", ";")):
            yield section, name.strip(), value.strip()


def _line(section: str, directive: str, value: str, *, step: Step, written: tuple[UnitLine, ...]) -> UnitLine:
    """The template's line of that directive which begins as this one does; the one that says most of it."""
    if f"{directive}={value}" == unit.recording(step.want):
        return UnitLine(section, directive, value, step.source, RECORDS)
    fits = [w for w in written if (w.section, w.directive) == (section, directive)]
    best = max((w for w in fits if value.startswith(w.value)), key=lambda w: len(w.value))
    return UnitLine(section, directive, value, best.source, best.why)


def role_of(step: Step, wanted: Wanted) -> Role:
    """The role that has the step."""
    return next(r for r in wanted.wish.roles if r.name == step.role)


def as_written(step: Step, wanted: Wanted) -> RoleStep:
    """The step as its role has it."""
    name = step.id.partition("/")[2].partition("[")[0]
    return next(s for s in role_of(step, wanted).steps if s.name == name)


def _template_lines(role: Role, step: RoleStep) -> Iterator[UnitLine]:
    """The lines of what a unit is rendered from; of values, what stands before the first `{{`."""
    text, place = _origin(role, step)
    section, comment = "", [""]
    for number, line in enumerate(text.splitlines(), start=1):
        name, sign, value = line.partition("=")
        if line.startswith("#"):
            comment.append(line.lstrip("# "))
            continue
        if line.startswith("["):
            section = line
        elif sign and name.isalnum():
            literal = DYNAMIC.split(value.removesuffix("\\"), maxsplit=1)[0].strip()
            yield UnitLine(section, name, literal, place(number), " ".join(filter(None, comment)))
        comment = []


def _origin(role: Role, step: RoleStep) -> tuple[str, Callable[[int], str]]:
    """The text of a step's `template`, `file` or `content`, and where each of its lines stands."""
    folder = role.source.rpartition("/")[0]
    if "template" in step.params:
        name = str(step.params["template"].value)
        return role.templates[name], lambda number: f"{folder}/templates/{name}:{number}"
    if "file" in step.params:
        name = str(step.params["file"].value)
        return role.files[name].decode(), lambda number: f"{folder}/files/{name}:{number}"
    content = step.params.get("content", Setting("", step.source))
    return str(content.value), lambda _: content.source
