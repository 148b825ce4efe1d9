"""Move, Rollout: the order in which a plan's changes are made, and who serves meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from launcher.model.problem import Problem
from launcher.model.role import Stage

Strategy: TypeAlias = Literal["rolling", "halves", "host-by-host", "restart"]
"""rolling: hosts first, then one instance of each pool after the other, then routers. halves: one half of
each pool moves while the other half serves; users are then sent to the half that has moved, and the other one
follows. host-by-host: each instance stops while its hosts change and boot. restart: instances start again,
and nothing else changes."""


@dataclass(frozen=True, slots=True)
class Move:
    """One step of a rollout: what changes together."""

    stages: tuple[Stage, ...]
    """The stages whose changes are made, in this order."""
    hosts: tuple[str, ...]
    """The hosts on which they are made."""
    instances: tuple[str, ...] = ()
    """Instances that start, restart or stop here, each as a whole."""
    drained: tuple[str, ...] = ()
    """Instances that routers send no request to during this move. Before the first change each of them ends
    the requests that it has. After the last move all get requests again, unless a move has failed."""
    serving: tuple[str, ...] = ()
    """Instances that take the requests of the drained ones meanwhile."""
    outage: tuple[str, ...] = ()
    """Pools of which nothing serves meanwhile."""
    stops: bool = False
    """The instances stop before their hosts change: a driver is not changed under an engine."""
    boots: tuple[str, ...] = ()
    """Hosts that boot."""
    canary: bool = False
    """Each instance is asked for an answer once it is ready; before users reach it, where it is drained."""
    partners: tuple[str, ...] = ()
    """Instances of other moves that the canary pairs these with, too."""
    commits: bool = False
    """Users reach what is new from here on: what fails no longer goes back."""

    def makes(self, host: str, stage: Stage, instance: str) -> bool:
        """Is a change of this host and stage made here? `instance`: empty for a change of the host itself."""
        return host in self.hosts and stage in self.stages and (not instance or instance in self.instances)


@dataclass(frozen=True, slots=True)
class Rollout:
    """How a plan's changes are made."""

    strategy: Strategy = "rolling"
    moves: tuple[Move, ...] = ()
    """In the order in which they are made; empty where nothing changes."""
    why: tuple[str, ...] = ()
    """What keeps engines that run and engines that are wanted from serving together."""
    refused: tuple[Problem, ...] = ()
    """Why the moves must not be made; empty where they may."""
    waiting: tuple[Problem, ...] = ()
    """Hosts that this run leaves as they are, and why: it may not reboot them."""
    reboots: bool = True
    """Hosts whose kernel must be another one boot; else they are reported, and nothing more is done there."""

    @property
    def independent(self) -> bool:
        """A failure of one host does not keep others from being changed."""
        return self.strategy == "rolling"
