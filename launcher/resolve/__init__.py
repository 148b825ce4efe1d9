"""Wish → Wanted: the deployment and each host's steps, computed without a network; the layer's only door."""

from __future__ import annotations

from launcher.model.deployment import Drained
from launcher.model.wish import Wanted, Wish
from launcher.resolve.expand import expand


def resolve(wish: Wish, drained: tuple[Drained, ...] = ()) -> Wanted:
    """What must be true, with these instances kept from requests.

    InputError with every Problem that keeps it from being computed.
    """
    deployment = None
    if wish.inventory.layout:
        # late: who only provisions hosts need not wait for it
        from launcher.resolve.deploy import deploy

        deployment = deploy(wish, drained)
    return expand(wish, deployment)
