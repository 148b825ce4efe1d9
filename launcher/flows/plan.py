"""plan: what `up` would change, and why; changes no host."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace

from launcher.execute.hands import Hands
from launcher.execute.observe import Observed, observe, questions_of
from launcher.execute.planner import make_plan
from launcher.model.facts import Facts, Unknown
from launcher.model.hold import TIME, holds_in
from launcher.model.plan import Plan
from launcher.model.revision import last_by_host
from launcher.model.wish import Wanted


def plan(fleet: Hands, wanted: Wanted) -> Plan:
    """Ask every host all its questions once, and compare."""
    observed = observe(fleet, wanted)
    now = time.strftime(TIME, time.gmtime())
    return replace(
        make_plan(wanted, observed),
        holds=holds_in(observed.facts.values(), now),
        remembered=last_by_host(observed.facts),
    )


def plan_offline(wanted: Wanted) -> Plan:
    """The plan with no host asked: every step is a change, from something unknown."""
    silence = Unknown("not asked")
    facts = {h: Facts(h, dict.fromkeys(questions_of(steps), silence)) for h, steps in wanted.steps.items()}
    return make_plan(wanted, Observed(facts))


def limited(wanted: Wanted, hosts: Collection[str]) -> Wanted:
    """The same wish for some hosts only; what serves elsewhere is still known, since peers connect to it."""
    return replace(
        wanted,
        steps={host: steps for host, steps in wanted.steps.items() if host in hosts},
    )
