"""Situation: all that the order of a plan's changes depends on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from launcher.execute.observe import Observed
from launcher.model.deployment import Instance
from launcher.model.inventory import ENGINE_POOLS
from launcher.model.plan import Plan
from launcher.model.wish import Wanted
from launcher.rollout.service import Service

Order: TypeAlias = Literal["rolling", "canary", "at-once"]
"""rolling: one instance after the other. canary: one first, then all others. at-once: all together."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a command allows."""

    below_minimum: bool = False
    """Too few instances of a pool may serve while hosts stop, or while `keeps_minimum` would refuse it."""
    keeps_minimum: bool = False
    """Refuse moves that leave a pool with too few instances; else they are made, and plans show them."""
    reboots: bool = True
    """Hosts that need it boot; else they wait, and are reported."""
    needs_all: bool = False
    """Refuse to begin while a host does not answer."""
    order: Order = "rolling"
    """Of a restart."""
    idle_within_s: float = 300.0
    """Seconds that a drained instance has to end its requests; then they are cut off and reported."""


@dataclass(frozen=True, slots=True)
class Situation:
    """All that the order of a plan's changes depends on."""

    wanted: Wanted
    observed: Observed
    planned: Plan
    now: Service = field(default_factory=Service)
    options: Options = field(default_factory=Options)
    left_out: frozenset[str] = frozenset()
    """Hosts that the run must not change."""

    @property
    def instances(self) -> tuple[Instance, ...]:
        """All of the deployment."""
        return self.wanted.deployment.instances if self.wanted.deployment else ()

    @property
    def routed(self) -> bool:
        """As the function of this name."""
        return routed(self.wanted, self.left_out)

    @property
    def kept_out(self) -> frozenset[str]:
        """Instances that get no requests before, during and after the rollout."""
        return frozenset(d.instance for d in self.now.stays_drained)


def routed(wanted: Wanted, left_out: frozenset[str]) -> bool:
    """Do users reach instances through routers, and may a run that leaves these hosts out change those?"""
    deployment = wanted.deployment
    return bool(deployment and deployment.routers and not wanted.routing_hosts & left_out)


def restarts_peers(wanted: Wanted) -> bool:
    """Does a pair that lost one side work again only after the other side restarts, too? By the release."""
    engine, deployment = wanted.wish.profile.engine, wanted.deployment
    if not engine or not deployment or engine.repair != "restart-peer":
        return False
    return len({i.pool for i in deployment.instances}) == len(ENGINE_POOLS)
