"""What a runbook asks of hosts itself: whether a move may be done, and commands that only look."""

from __future__ import annotations

import re
from collections.abc import Iterable

from launcher.flows.runbook import Move, Scope
from launcher.flows.status import Status
from launcher.health.hands import Hands, look_within_s
from launcher.model.deployment import Instance
from launcher.model.facts import Facts, Probe, Unknown
from launcher.model.inventory import Inventory
from launcher.model.problem import Problem
from launcher.model.runbook import OnHost
from launcher.rollout.minimum import too_few
from launcher.wait import CLOCK, Clock, wait_for

COMMAND_WITHIN_S = 60
AGAIN_EVERY_S = 5.0
SHOWN_LINES = 20


def below_minimum(
    scope: Scope, inventory: Inventory, instances: Iterable[Instance], now: Status
) -> tuple[Problem, ...]:
    """Pools that would have too few instances that serve without the target's; a target that does not serve
    takes none away."""
    up = {p.instance for p in now.processes} - {p.instance for p in now.processes if not p.up}
    do = "wait until the others serve; or lower `minimum`, where the service may stop"
    return tuple(too_few(inventory.pools, instances, [scope.instances], up, do=do))


def look(fleet: Hands, move: Move, *, clock: Clock = CLOCK) -> tuple[tuple[str, str], ...] | Problem:
    """Ask the hosts until they show what is expected: host and output of each; what they do not show."""
    on_host = move.step.on_host
    assert on_host, "or it is not asked of hosts"
    probe = Probe("command", (move.run, COMMAND_WITHIN_S))

    def ask() -> tuple[tuple[str, str], ...] | Problem:
        answers = fleet.ask(dict.fromkeys(move.hosts, (probe,)), within_s=look_within_s + COMMAND_WITHIN_S)
        wrong = (p for h, a in answers.items() if (p := missing(h, a, probe, on_host)))
        return next(wrong, None) or tuple((h, output(a, probe)) for h, a in answers.items())

    return wait_for(
        ask,
        lambda found: not isinstance(found, Problem),
        every_s=AGAIN_EVERY_S,
        within_s=on_host.within_s,
        clock=clock,
    ).answer


def missing(host: str, answer: Facts | Problem, probe: Probe, on_host: OnHost) -> Problem | None:
    """What a host's answer lacks, or has too much."""
    if isinstance(answer, Problem):
        return answer
    told = answer[probe]
    if isinstance(told, Unknown):
        return Problem(f"the command was not run: {told.reason}", host)
    text = output(answer, probe)
    if told["exit"] is None:
        what = f"it did not end within {COMMAND_WITHIN_S} s"
    elif on_host.finds and not re.search(on_host.finds, text, re.MULTILINE):
        what = f"`{on_host.finds}` is not in what it says"
    elif on_host.lacks and (found := re.search(on_host.lacks, text, re.MULTILINE)):
        what = f"`{found[0]}` is in what it says, and must not be"
    elif not on_host.finds and not on_host.lacks and told["exit"] != 0:
        what = f"it ended with status {told['exit']}"
    else:
        return None
    return Problem(what, host, more=text)


def output(answer: Facts | Problem, probe: Probe) -> str:
    """The last lines that a command wrote."""
    told = answer[probe] if isinstance(answer, Facts) else None
    lines = f"{told['stdout']}{told['stderr']}".splitlines() if isinstance(told, dict) else []
    return "\n".join(lines[-SHOWN_LINES:])


def held_hosts(scope: Scope, hosts: Iterable[str]) -> tuple[str, ...]:
    """The hosts that nobody else may be at work on: those of the target, or all."""
    return scope.hosts or tuple(hosts)
