"""plan_rows: a plan as rows of a page, hosts with the same change together; knows no colours."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from launcher.cli.words import count
from launcher.load.ranges import host_range
from launcher.model.plan import Action, Change, Plan
from launcher.model.rollout import Move, Rollout
from launcher.model.wish import Wanted
from launcher.steps import turns


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a printed plan, in columns."""

    hosts: str
    mark: str
    step: str
    subject: str
    before: str
    after: str
    because: str
    diff: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """The rows of one stage."""

    stage: str
    rows: tuple[Row, ...]


def sections(plan: Plan) -> tuple[Section, ...]:
    """The stages that have changes, in the order in which these are made, each with its rows."""
    stages = dict.fromkeys(c.stage for c in plan.changes)
    return tuple(Section(stage, tuple(rows(plan.stage(stage)))) for stage in stages)


def rows(changes: Iterable[Change]) -> Iterator[Row]:
    """One row for each different change, with all hosts that need it; an instance's life is one row."""
    alike: dict[tuple[str, ...], list[Change]] = {}
    for c in changes:
        lives = (c.instance, c.action.name) if c.instance else ()
        alike.setdefault(
            lives or (c.step, c.action.name, c.subject, c.before, c.after, c.because, c.diff), []
        ).append(c)
    for same in alike.values():
        first = same[0]
        yield Row(
            hosts=host_range(c.host for c in same),
            mark=first.action.value,
            step=first.step,
            subject=first.instance or first.subject,
            before=first.before,
            after=first.after,
            because=first.because,
            diff=first.diff,
        )


def summary(plan: Plan) -> str:
    """`4 changes on 3 hosts, decode-0 restarts, gpu01 boots.`"""
    if not plan:
        return "No changes on the hosts that answered." if plan.unreached else "No changes."
    hosts = {c.host for c in plan.changes}
    words = [f"{count(len(plan.changes), 'change')} on {count(len(hosts), 'host')}"]
    by_action = sorted((c.action.name, c.instance) for c in plan.changes if c.instance)
    for action, verb in (("START", "starts"), ("RESTART", "restarts"), ("STOP", "stops")):
        names = [n for (a, n), _ in groupby(by_action) if a == action]
        if names:
            words.append(f"{', '.join(names)} {verb if len(names) == 1 else verb[:-1]}")
    boots = {c.host for c in plan.changes if c.action is Action.REBOOT}
    if boots:
        words.append(f"{host_range(boots)} {'boots' if len(boots) == 1 else 'boot'}")
    return ", ".join(words) + "."


def move_lines(rollout: Rollout) -> Iterator[str]:
    """The order of the moves, a line each, where requests are kept from an instance or fail meanwhile."""
    plain = rollout.strategy == "rolling" and not any(m.drained or m.outage for m in rollout.moves)
    if plain and not rollout.waiting:
        return
    if rollout.why:
        yield f"engines that run and engines that are wanted cannot serve together: {', '.join(rollout.why)}"
    for number, move in enumerate(() if plain else rollout.moves, start=1):
        yield f"{number}. {move_text(move, rollout)}"
    yield from (problem.what for problem in rollout.waiting)


def move_text(move: Move, rollout: Rollout) -> str:
    """`decode-0: drained, stopped, gpu03 boots, started; decode-1 serves meanwhile`."""
    words = [
        "drained" if move.drained else "",
        "stopped" if move.stops else "",
        "" if move.instances and not move.stops else _stages(move),
        f"{host_range(move.boots)} {'boots' if len(move.boots) == 1 else 'boot'}" if move.boots else "",
        "started" if move.instances else "",
        "asked" if move.canary else "",
    ]
    serving = ", ".join(move.serving)
    verb = "serves" if len(move.serving) == 1 else "serve"
    meanwhile = [f"{serving} {verb} meanwhile"] if move.drained and serving else []
    meanwhile += [f"requests to pool {pool} fail meanwhile" for pool in move.outage]
    meanwhile += ["from here on users reach what is new"] if move.commits and move.drained else []
    who = ", ".join(move.instances) or host_range(move.hosts)
    return "; ".join([f"{who}: {', '.join(word for word in words if word)}", *meanwhile])


def _stages(move: Move) -> str:
    return "routers" if move.stages == ("router",) else f"{', '.join(move.stages)} changes"


def offline_lines(wanted: Wanted) -> Iterator[str]:
    """Every unit's text and every command line, by host."""
    for host, steps in wanted.steps.items():
        for step in steps:
            for text in (u for u in turns.units_of(step.want) if u.content):
                yield f"\n# {host}: {text.name}"
                yield text.content.rstrip()
    deployment = wanted.deployment
    for process in (p for i in (deployment.instances if deployment else ()) for p in i.processes):
        yield f"\n# {process.host}: {process.instance}"
        yield shlex.join(process.argv())
    for router in deployment.routers if deployment else ():
        yield f"\n# {router.host}: router {router.slot}"
        yield shlex.join(router.argv())
