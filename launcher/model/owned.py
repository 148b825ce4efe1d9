"""Owned: what a step has on a host for itself, so that no other step may want it in another way."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Owned:
    """One thing on a host."""

    thing: str
    """What it is, in words and by its one name: `path /etc/hosts`, `package chrony`, `user vllm`."""
    state: object
    """What is wanted of it; two steps may want the same thing if they want equal states."""


def path(name: str, state: object) -> Owned:
    """A file, folder or link, or that there is none."""
    return Owned(f"path {name}", state)
