"""Owned: what a step has on a host for itself, so that no other step may want it in another way."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Owned:
    """One thing on a host."""

    sort: str
    """path, unit, package, …"""
    name: str
    """The one name that it has, however a step writes it."""
    state: object
    """What is wanted of it."""
    shared: bool = False
    """Steps of several roles may want it, all in the same state; else it is of one role alone."""

    def __str__(self) -> str:
        return f"{self.sort} {self.name}"


def path(name: str, state: object, *, shared: bool = False) -> Owned:
    """A file, folder or link, or that there is none."""
    return Owned("path", name, state, shared)
