"""tune: a layout, step by step: what each changes, whether it may be tried, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from launcher.bench.decide import decide
from launcher.load.document import Location
from launcher.load.layered import layout_text, locations, overlaid
from launcher.model.deployment import Instance
from launcher.model.problem import InputError, Problem
from launcher.model.tune import FILL, Decision, Trial, Tune, TuneStep
from launcher.model.values import Json
from launcher.model.wish import Wanted

Values: TypeAlias = Mapping[str, Json]
Build: TypeAlias = Callable[[Values], Wanted]
"""A layout's values → what must be true with it. InputError where it cannot be, or rules refuse it."""
Look: TypeAlias = Callable[[Wanted, TuneStep, tuple[str, ...]], Trial]
"""What is known of it under a step's load, or found by measuring; the steps that it has taken."""


@dataclass(frozen=True, slots=True)
class Way:
    """How far it has come."""

    values: Values
    wanted: Wanted
    taken: tuple[str, ...] = ()
    """Steps that were kept."""
    notes: Mapping[Location, str] | None = None
    """Line of the layout → the step that wrote it."""


def begun(tune: Tune, values: Values, build: Build) -> Way:
    """The layout to begin with. InputError where it cannot serve, or is not of the tune's pool alone."""
    wanted = build(values)
    layout = wanted.wish.profile.layout
    assert layout, "what is tuned is laid out"
    if set(layout.engines) != {tune.pool}:
        what = f"layout {layout.name} has the pools {', '.join(layout.engines)}, expected {tune.pool} alone"
        why = "what one side takes of a request cannot be measured while the other side is part of it"
        do = f"begin with one of `dsv32-launch tune --list`, or write a layout with {tune.pool} alone"
        raise InputError(Problem(what, layout.source, why, do))
    return Way(values, wanted, notes={})


def walk(tune: Tune, way: Way, build: Build, look: Look) -> Iterator[tuple[Decision, Way]]:
    """Each step's decision, and how far it has come with it."""
    for step in tune.steps:
        decision, way = _take(tune, step, way, build, look)
        yield decision, way


def _take(tune: Tune, step: TuneStep, way: Way, build: Build, look: Look) -> tuple[Decision, Way]:
    if why := passed_over(tune, step, way):
        return Decision(step.id, "skipped", why), way
    values = filled(overlaid(way.values, step.change), tune, way.wanted)
    try:
        wanted = build(values)
        changes = changed(way.wanted, wanted)
        if not changes:
            return Decision(step.id, "skipped", "the engines' command lines have it already"), way
        here, there = (build(overlaid(v, step.during)) for v in (way.values, values))
        before = look(here if step.during else way.wanted, step, way.taken)
        after = look(there if step.during else wanted, step, (*way.taken, step.id))
    except InputError as error:
        return Decision(step.id, "skipped", _refused(error)), way
    found = decide(before, after, step.figure, noise=tune.noise)
    decision = Decision(step.id, found.outcome, found.reason, changes, before, after)
    if found.outcome != "kept":
        return decision, way
    notes = {**(way.notes or {}), **dict.fromkeys(locations(step.change), f"tune: {step.id}")}
    return decision, Way(values, wanted, (*way.taken, step.id), notes)


def passed_over(tune: Tune, step: TuneStep, way: Way) -> str:
    """Why a step is not for this release or shape; empty: it is."""
    # late: its own import is a tenth of what a command without it takes
    from packaging.specifiers import SpecifierSet

    version = way.wanted.wish.profile.stack.engine_version
    if step.releases and not SpecifierSet(step.releases).contains(version, prereleases=True):
        return f"it is for vLLM {step.releases}, and this is {version}"
    hosts = hosts_of(way.wanted, tune)
    if hosts < step.least_hosts:
        return f"it is for instances of {step.least_hosts} hosts or more, and these have {hosts}"
    return ""


def _refused(error: InputError) -> str:
    first, *more = error.problems
    told = f"refused before anything was changed: {first.what}" + (f" ({first.where})" if first.where else "")
    return f"{told}, and {len(more)} more" if more else told


def filled(values: dict[str, Json], tune: Tune, wanted: Wanted) -> Values:
    """`data_parallel: fill` as a number: ranks for all GPUs of an instance; without GPUs one a host."""
    pool = values.get(tune.pool)
    if not isinstance(pool, dict) or pool.get("data_parallel") != FILL:
        return values
    hardware = wanted.wish.profile.hardware
    hosts, tensor = int(pool.get("hosts_per_instance", 1)), int(pool.get("tensor_parallel", 1))
    gpus = hosts * hardware.gpus_per_host if hardware else 0
    return {**values, tune.pool: {**pool, "data_parallel": max(gpus // tensor, hosts)}}


def instance_of(wanted: Wanted, tune: Tune) -> Instance:
    """The first of the pool: the one that is measured."""
    assert wanted.deployment, "what is tuned is deployed"
    return next(i for i in wanted.deployment.instances if i.pool == tune.pool)


def hosts_of(wanted: Wanted, tune: Tune) -> int:
    """Of an instance."""
    return len(instance_of(wanted, tune).processes)


def changed(before: Wanted, after: Wanted) -> tuple[str, ...]:
    """What differs between their first instances: `- --x 1`, `+ --x 2`, and how many hosts one has."""
    old, new = _lines(before), _lines(after)
    return (
        *(f"- {line}" for line in old if line not in new),
        *(f"+ {line}" for line in new if line not in old),
    )


def _lines(wanted: Wanted) -> tuple[str, ...]:
    assert wanted.deployment, "what is tuned is deployed"
    instance = wanted.deployment.instances[0]
    first = instance.processes[0]
    hosts = len(instance.processes)
    flags = (" ".join(argument.words()) for argument in first.arguments)
    variables = (f"{name}={setting.value}" for name, setting in first.environment.items())
    return (f"{hosts} host{'s' if hosts > 1 else ''} an instance", *flags, *variables)


def text_of(way: Way, tune: Tune, *, begun_with: str) -> str:
    """The layout file that it ends in."""
    steps = ", ".join(way.taken) or "nothing"
    head = (
        f"Written by dsv32-launch tune {tune.name}: layout {begun_with}, and what was better than it.",
        "Why lines without a remark are there says that layout; why the others are, the report.",
    )
    about = f"{begun_with} tuned for {tune.pool}, with {steps}."
    return layout_text({**way.values, "about": about}, head=head, notes=way.notes or {})
