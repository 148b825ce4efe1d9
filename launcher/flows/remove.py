"""remove: takes away from hosts what roles made there, in reverse; knows what stays."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from launcher.execute.batch import batch
from launcher.execute.hands import Hands
from launcher.execute.hosts import by_host
from launcher.execute.observe import observe
from launcher.execute.planner import bind
from launcher.flows.targets import FRONT_ADDRESS, WATCH, Limit, all_units, unknown
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.plan import Action, Change, Draft, Plan
from launcher.model.problem import InputError, PlanRefusedError, Problem
from launcher.model.role import Step
from launcher.model.run import Event, EventKind
from launcher.model.wish import Wanted
from launcher.rollout.run import Run
from launcher.steps import KINDS, package, unit


def chosen(wanted: Wanted, names: Iterable[str]) -> frozenset[str]:
    """The roles that `names` mean; `all` means all. InputError where another one needs one of them."""
    roles = {role.name: role for role in wanted.wish.roles}
    meant = frozenset(roles if "all" in names else names)
    if wrong := sorted(meant - set(roles)):
        do = "name roles of its stack or platform"
        raise InputError(*(replace(unknown(name, "role", sorted([*roles, "all"])), do=do) for name in wrong))
    whole = meant
    while more := {r.name for r in roles.values() if r.name not in whole and whole & set(r.needs)}:
        whole |= more
    do = f"dsv32-launch remove {' '.join(sorted(whole))}"
    problems = []
    for role in roles.values():
        if role.name not in meant and (needed := sorted(meant & set(role.needs))):
            what = f"role {role.name} needs {', '.join(needed)}, and would stay"
            problems.append(Problem(what, where=role.source, do=do))
    if problems:
        raise InputError(*problems)
    return meant


def hosts_of(limit: Limit) -> frozenset[str]:
    """Those that were named, themselves or as an instance; not the others of an instance that spans one."""
    return limit.hosts - set(limit.added)


def plan_removal(fleet: Hands, here: Wanted, roles: Collection[str]) -> Plan:
    """What is there of these roles' steps, last step first. PlanRefusedError where something serves."""
    observed = observe(fleet, here)
    if serving := tuple(_serving(here, observed.facts.values())):
        raise PlanRefusedError(*serving)
    return Plan(
        changes=tuple(
            bind(step, draft)
            for host, facts in observed.facts.items()
            for step in _only_of(roles, here.steps[host])
            for draft in undone(step, facts)
        ),
        facts={},
        data_digest=here.wish.data_digest,
        unreached=dict(observed.problems),
    )


def _only_of(roles: Collection[str], steps: Sequence[Step]) -> Iterator[Step]:
    """The steps of these roles, last one first, without those whose things another role needs, too."""
    needed = {thing for step in steps if step.role not in roles for thing in _things(step)}
    return (step for step in reversed(steps) if step.role in roles and not _things(step) & needed)


def _things(step: Step) -> set[tuple[str, str]]:
    return {(owned.sort, owned.name) for owned in KINDS[step.kind].owns(step.want)}


def undone(step: Step, facts: Facts) -> tuple[Draft, ...]:
    """What takes one step's work away; of what stays, only that others may upgrade it again."""
    if step.stays:
        return package.freed(step.want, facts) if isinstance(step.want, package.Params) else ()
    return KINDS[step.kind].undone(step.want, facts)


def remove(
    fleet: Hands, here: Wanted, planned: Plan, roles: Collection[str], run: Run
) -> tuple[Problem, ...]:
    """Do what was approved, hosts in parallel, each booted at its end where its kernel shows it still; look
    back. All Problems."""
    changes = by_host(planned.changes)
    ended = fleet.map(tuple(changes), lambda host: _take_away(fleet, host, changes[host], run))
    failed = {host: problem for host, problem in ended.items() if problem}
    done = [host for host in changes if host not in failed]
    steps = {host: here.steps[host] for host in done}
    left = plan_removal(fleet, replace(here, steps=steps), roles)
    there = (_left(host, its) for host, its in by_host(left.changes).items())
    return (*failed.values(), *left.unreached.values(), *there)


def _take_away(fleet: Hands, host: str, changes: Sequence[Change], run: Run) -> Problem | None:
    """One host's changes in one request, then its boot."""
    boots = [c for c in changes if c.action is Action.REBOOT]
    work = batch(c for c in changes if c not in boots)
    ended = fleet.do(host, work.ops, listener=run.listener, within_s=work.within_s, subject="remove")
    for change in work.done(len(work.ops) if ended.failed_index is None else ended.failed_index):
        run.listener(_event("change-done", change))
    if ended.error and ended.failed_index is not None:
        failed = work.failed(ended.failed_index)
        for change in failed:
            run.listener(_event("change-failed", change))
        steps = ", ".join(dict.fromkeys(c.step for c in failed))
        return replace(ended.error, where=f"{host}, step {steps}")
    if ended.error or not boots or run.interrupted():
        return ended.error
    within_s = max(float(op.args["within_s"]) for change in boots for op in change.ops)
    problem = fleet.reboot(host, listener=run.listener, within_s=within_s)
    for change in boots if problem is None else ():
        run.listener(_event("change-done", change))
    return problem


def _event(kind: EventKind, change: Change) -> Event:
    return Event(kind, f"{change.subject}: {change.after}", host=change.host, subject=change.step)


def _left(host: str, changes: Sequence[Change]) -> Problem:
    what = "; ".join(f"{c.subject}: {c.before}, wanted {c.after}" for c in changes)
    return Problem(
        f"{len(changes)} things are still there", where=host, why=what, do="give the command again"
    )


def _serving(here: Wanted, answers: Iterable[Facts]) -> Iterator[Problem]:
    """Units that serve on these hosts: nobody takes away a driver, or an environment, under them."""
    facts = {its.host: its for its in answers}
    units = all_units(here.deployment) if here.deployment else ()
    keeps = (WATCH, FRONT_ADDRESS)  # as guards do: they go with their roles, and `down` leaves them
    for one in units:
        if one.host not in facts or one.guards or one.owner in keeps:
            continue
        have = facts[one.host].get(Probe("unit", (one.name,)), Unknown("not asked"))
        if not isinstance(have, Unknown) and unit.runs(have):
            yield Problem(
                what=f"{one.name} of {one.owner} runs on {one.host}",
                where=one.host,
                do=f"dsv32-launch down {here.wish.inventory.path} --limit {one.host}",
            )
