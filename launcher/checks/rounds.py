"""Which hosts measure together, and when: rounds in which no host is in two meetings; knows no check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from launcher.model.load_check import Together

Group: TypeAlias = tuple[str, ...]


def rounds_of(together: Together, hosts: Sequence[str]) -> tuple[tuple[Group, ...], ...]:
    """Rounds, one after the other; the groups of one round at the same time."""
    if together == "each":
        return (tuple((host,) for host in hosts),) if hosts else ()
    if together == "turns":
        return tuple(((host,),) for host in hosts)
    if together == "pairs":
        return tournament(hosts)
    return ((tuple(hosts),),) if len(hosts) > 1 else ()


def tournament(hosts: Sequence[str]) -> tuple[tuple[Group, ...], ...]:
    """Each with each once, in as few rounds as there can be: the first stays, all others move on by one seat.

    Of an odd number one host rests in each round.

    >>> tournament(["a", "b", "c"])
    ((('b', 'c'),), (('a', 'c'),), (('a', 'b'),))
    """
    seats: list[str | None] = [*([None] if len(hosts) % 2 else []), *hosts]
    order = {host: place for place, host in enumerate(hosts)}
    rounds = []
    for _ in range(len(seats) - 1):
        met = [(a, b) for a, b in zip(seats, reversed(seats), strict=True) if a is not None and b is not None]
        half = {tuple(sorted(pair, key=order.__getitem__)) for pair in met}
        rounds.append(tuple(sorted(half, key=lambda pair: order[pair[0]])))
        seats = [seats[0], *seats[2:], seats[1]]
    return tuple(rounds) if len(hosts) > 1 else ()
