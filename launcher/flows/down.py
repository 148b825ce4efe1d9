"""down: front and router first, then engines; software and weights stay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from launcher.flows.targets import Limit, Unit
from launcher.health.hands import look_within_s
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.plan import Action, Change, Op, Plan
from launcher.model.problem import Problem
from launcher.model.role import Stage
from launcher.model.run import Event, Listener
from launcher.model.wish import Wanted
from launcher.remote.fleet import Fleet

# systemd allows a unit 90 s to stop before it kills it, and the agent waits 120 s for a guard
stop_within_s = 180.0


def units_to_stop(wanted: Wanted, limit: Limit) -> tuple[tuple[Unit, ...], ...]:
    """Units in waves: nobody is sent a request any more before an engine goes away.

    An instance stops on all its hosts; a router only where its host was named.
    """
    routers = wanted.deployment.routers if wanted.deployment else ()
    fronts = wanted.deployment.fronts if wanted.deployment else ()
    return (
        tuple(Unit(f.host, f.unit, "front") for f in fronts if f.host in limit.named),
        tuple(Unit(r.host, r.unit, "router") for r in routers if r.host in limit.named),
        tuple(Unit(p.host, p.unit, i.name) for i in limit.instances for p in i.processes),
    )


def plan_down(fleet: Fleet, wanted: Wanted, waves: Sequence[Sequence[Unit]]) -> Plan:
    """A STOP for each unit that runs, in the order of the waves; what is down already stays as it is."""
    units = [u for wave in waves for u in wave]
    asked: dict[str, list[Probe]] = {}
    for unit in units:
        asked.setdefault(unit.host, []).append(Probe("unit", (unit.name,)))
    answers = fleet.ask(asked, within_s=look_within_s)
    return Plan(
        changes=tuple(c for u in units for c in stops(u, answers[u.host])),
        facts={},
        data_digest=wanted.wish.data_digest,
        unreached={h: a for h, a in answers.items() if isinstance(a, Problem)},
    )


def stops(unit: Unit, answer: Facts | Problem) -> tuple[Change, ...]:
    """The one change that stops a running unit; () for one that is down or was not asked about."""
    state = None if isinstance(answer, Problem) else answer[Probe("unit", (unit.name,))]
    if state is None or isinstance(state, Unknown) or state["active"] in ("inactive", "failed"):
        return ()
    stage: Stage = "router" if unit.owner in ("router", "front") else "engine"
    change = Change(
        host=unit.host,
        stage=stage,
        step=f"down[{unit.owner}]",
        action=Action.STOP,
        subject=unit.name,
        before=state["active"],
        after="inactive",
        because="down",
        ops=(stopping(unit),),
        instance="" if stage == "router" else unit.owner,
    )
    return (change,)


def stopping(unit: Unit) -> Op:
    """A process is stopped by its guard, with all its peers; it would start it again otherwise."""
    if unit.owner in ("router", "front"):
        return Op("units", {"stop": [unit.name]})
    return Op("order", {"instance": unit.owner, "verb": "stop", "unit": unit.name})


def stop(
    fleet: Fleet, waves: Sequence[Sequence[Unit]], plan: Plan, listener: Listener
) -> tuple[Problem, ...]:
    """Stop what the plan says, wave by wave, hosts of a wave in parallel; all Problems."""
    problems: list[Problem] = []
    for wave in waves:
        names = {(u.host, u.name) for u in wave}
        changes = [c for c in plan.changes if (c.host, c.subject) in names]
        problems += stop_wave(fleet, changes, listener)
    return tuple(problems)


def stop_wave(fleet: Fleet, changes: Iterable[Change], listener: Listener) -> list[Problem]:
    """Stop these units, one request a host."""
    by_host: dict[str, list[Change]] = {}
    for change in changes:
        by_host.setdefault(change.host, []).append(change)

    def stop_on(host: str) -> Problem | None:
        ops = tuple(op for c in by_host[host] for op in c.ops)
        for change in by_host[host]:
            listener(Event("change-started", f"stop {change.subject}", host, change.step))
        done = fleet.do(host, ops, listener=listener, within_s=stop_within_s, subject="down")
        for change in by_host[host]:
            event = Event("change-done", f"stop {change.subject}", host, change.step)
            listener(event if done.ok else replace(event, kind="change-failed"))
        return done.error

    ended = fleet.map(by_host, stop_on)
    return [problem for problem in ended.values() if problem is not None]
