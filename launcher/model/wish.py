"""Wish, Wanted: all that was read, and all that must be true; knows neither files nor hosts' answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from launcher.model.deployment import Deployment
from launcher.model.inventory import Inventory
from launcher.model.monitoring import Monitoring
from launcher.model.profile import Profile
from launcher.model.role import Role, Step
from launcher.model.secret import Secret


@dataclass(frozen=True, slots=True)
class Wish:
    """Inventory, profile and the roles of its stack, sorted by stage and `needs`."""

    inventory: Inventory
    profile: Profile
    roles: tuple[Role, ...]
    data_digest: str
    """sha256 over every file that was read."""
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """All that was read, as a data folder, `inventory.yaml` in it: name → content. No secret is there."""
    monitoring: Monitoring | None = None
    """Alerts and dashboards; None where nothing is monitored."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What must be true: the deployment, and each host's steps in the order in which they are applied."""

    wish: Wish
    deployment: Deployment | None
    steps: Mapping[str, tuple[Step, ...]]
    whole: bool = True
    """The steps are all there are: a unit of ours that none of them names is to go."""

    @property
    def routing_hosts(self) -> frozenset[str]:
        """The hosts that route; none where nothing is to serve."""
        return self.deployment.routing_hosts if self.deployment else frozenset()
