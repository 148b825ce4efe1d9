"""Steps and facts to a Plan: order, instances as a whole, orphans; pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from launcher.execute.observe import Observed
from launcher.execute.orphans import ORPHAN, orphans
from launcher.model.facts import Facts, Unknown
from launcher.model.hold import HOLD
from launcher.model.plan import Action, Change, Draft, Plan
from launcher.model.revision import LAST
from launcher.model.role import STAGES, Step
from launcher.model.wish import Wanted
from launcher.steps import KINDS, VOLATILE, turns, unit

LIFE = (Action.START, Action.RESTART, Action.STOP)


def make_plan(wanted: Wanted, observed: Observed) -> Plan:
    """All changes in the order of their application: by stage, host and step, then instance by instance."""
    changes: list[Change] = []
    for host, facts in observed.facts.items():
        steps = wanted.steps[host]
        if wanted.whole:
            changes.extend(orphans(host, steps, facts))
        for step in steps:
            changes.extend(bind(step, draft) for draft in KINDS[step.kind].changes(step.want, facts))
    changes.extend(list(_peers(wanted, observed, changes)))
    cut_off = broken_instances(wanted, observed.problems)
    return Plan(
        changes=in_order(wanted, (c for c in changes if c.instance not in cut_off)),
        facts={host: facts_digest(facts) for host, facts in observed.facts.items()},
        data_digest=wanted.wish.data_digest,
        unreached=dict(observed.problems),
    )


def started_again(wanted: Wanted, observed: Observed, changes: Iterable[Change]) -> list[Change]:
    """The same forced changes, by what their hosts say now: a RESTART, or a START of what has stopped."""
    found = []
    for change in changes:
        facts = observed.facts.get(change.host)
        step = next((s for s in wanted.steps[change.host] if s.id == change.step), None)
        if facts is None or step is None:
            continue
        kind = turns if isinstance(step.want, turns.Params) else unit
        draft = kind.start_again(step.want, facts, "")
        found.append(replace(bind(step, draft), because=change.because, forced=True))
    return found


def bind(step: Step, draft: Draft) -> Change:
    """The change that a draft is on this step's host."""
    lives = draft.action in LIFE and step.instance != ""
    return Change(
        host=step.host,
        stage=step.stage,
        step=step.id,
        action=draft.action,
        subject=draft.subject,
        before=draft.before,
        after=draft.after,
        because=f"{step.source}: {draft.because}" if draft.because else step.source,
        ops=unit.life(step.want, draft.action, together=True) if lives else draft.ops,
        instance=step.instance if lives else "",
        diff=draft.diff,
    )


def broken_instances(wanted: Wanted, hosts: Iterable[str]) -> dict[str, str]:
    """Instance → one of `hosts` that it spans: it cannot start, since each rank waits for all others."""
    lost = set(hosts)
    instances = wanted.deployment.instances if wanted.deployment else ()
    return {i.name: host for i in instances for host in i.hosts if host in lost}


def facts_digest(facts: Facts) -> str:
    """sha256 over one host's answers, but for what moves by itself: who holds it, what it remembers, and
    whether engines answer."""
    rows = [
        [p.kind, p.args, _lasting(p.kind, answer)]
        for p, answer in facts.items()
        if p not in (HOLD, LAST) and p.kind != "http"
    ]
    text = json.dumps(rows, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _lasting(kind: str, answer: Any) -> Any:
    if isinstance(answer, Unknown):
        return str(answer)
    if kind in VOLATILE and isinstance(answer, dict):
        return {key: value for key, value in answer.items() if key not in VOLATILE[kind]}
    return answer


def _peers(wanted: Wanted, observed: Observed, changes: Sequence[Change]) -> Iterator[Change]:
    """A RESTART of each running process whose instance starts on another host: it starts as a whole."""
    cause = {c.instance: c for c in reversed(changes) if c.action in LIFE and c.instance}
    moved = {(c.host, c.step) for c in changes if c.action in LIFE}
    for host, facts in observed.facts.items():
        for step in wanted.steps[host]:
            first = cause.get(step.instance)
            if first is None or first.action is Action.STOP or (host, step.id) in moved:
                continue
            verb = "starts" if first.action is Action.START else "restarts"
            because = f"{step.instance} starts as a whole, and it {verb} on {first.host}"
            draft = unit.restart(step.want, facts, because)
            if draft:
                yield bind(step, draft)


def in_order(wanted: Wanted, changes: Iterable[Change]) -> tuple[Change, ...]:
    """By stage; in it first what is done host by host, in step order, then instances, leaders first; what
    routers must have forgotten before it goes is last."""
    hosts = {host: n for n, host in enumerate(wanted.steps)}
    instances = wanted.deployment.instances if wanted.deployment else ()
    places = {(i.name, host): (n, m) for n, i in enumerate(instances) for m, host in enumerate(i.hosts)}

    def place(change: Change) -> tuple[int, int, int, int]:
        stage = STAGES.index(change.stage)
        if change.instance:
            return (stage, 1, *places[change.instance, change.host])
        if change.stage == "router" and change.step.startswith(ORPHAN):
            return (stage, 2, hosts[change.host], 0)
        return (stage, 0, hosts[change.host], 0)

    return tuple(sorted(changes, key=place))
