"""Wish → Wanted: the deployment and each host's steps, computed without a network; the layer's only door."""

from __future__ import annotations

from launcher.model.wish import Wanted, Wish
from launcher.resolve.deploy import deploy
from launcher.resolve.expand import expand


def resolve(wish: Wish) -> Wanted:
    """What must be true. InputError with every Problem that keeps it from being computed."""
    deployment = deploy(wish) if wish.inventory.layout else None
    return expand(wish, deployment)
