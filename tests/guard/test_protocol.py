"""Two epochs are never alive at once, all come together again, and planted bugs are found."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from explore import Bounds, Explorer, ViolationError
from loaded import GUARD, guard_module

ALL_ORDERS = ("", "a", "b", "")
"""Nothing yet, a start, another start, a stop."""
BOUNDS = {
    "two hosts, all orders, a disk lost": Bounds(2, epochs=3, orders=ALL_ORDERS, losses=1),
    "three hosts, a new start": Bounds(3, epochs=2, orders=("a", "b")),
    "three hosts, a disk lost": Bounds(3, epochs=3, losses=1),
    "three hosts that give up": Bounds(3, epochs=3, most_tries=2),
}
SMALL = Bounds(2, epochs=2, orders=("", "a"))
Decide = Callable[[Any, Any, Mapping[str, Any], int], Any]


@pytest.mark.parametrize("name", BOUNDS)
def test_every_interleaving(name: str, record_property: Callable[[str, object], None]) -> None:
    explorer = Explorer(guard_module(), BOUNDS[name])
    worlds = explorer.explore()
    print(f"{name}: {worlds} worlds")
    record_property("worlds", worlds)
    assert {h.alive for world in explorer.mail for h in world.hosts} >= {0, 1, 2}, "it came to two epochs"
    assert explorer.stuck() == []


def forgets_to_wait(guard: Any, decide: Decide) -> Decide:
    """Clean without waiting for the end of what runs."""
    return lambda me, here, peers, most: decide(
        me, here._replace(alive=here.alive and me.phase != guard.STOP), peers, most
    )


def keeps_its_epoch(guard: Any, decide: Decide) -> Decide:
    """The next life has the number of the last one."""

    def mutant(me: Any, here: Any, peers: Mapping[str, Any], most: int) -> Any:
        found = decide(me, here, peers, most)
        raised = me.phase == guard.STOP and found.told.phase == guard.CLEAN
        return found._replace(told=found.told._replace(epoch=max(me.epoch, 1))) if raised else found

    return mutant


def takes_any_promise(guard: Any, decide: Decide) -> Decide:
    """A peer that is clean for another epoch is good enough."""
    strict = guard.waits_for

    def lax(me: Any, peers: Mapping[str, Any], most: int) -> str:
        return str(strict(me, {n: p and p._replace(epoch=me.epoch) for n, p in peers.items()}, most))

    guard.waits_for = lax
    return decide


def obeys_at_once(guard: Any, decide: Decide) -> Decide:
    """A new start is followed before every host has it."""
    guard.followed = lambda me, peers: me._replace(order=me.offered)
    return decide


def never_gives_up(guard: Any, decide: Decide) -> Decide:
    return lambda me, here, peers, most: decide(me, here, peers, most + 1)


BUGS = {
    forgets_to_wait: ("two epochs are alive", SMALL),
    keeps_its_epoch: ("a process met one of an earlier life", Bounds(2, epochs=3)),
    takes_any_promise: ("two epochs are alive", SMALL),
    obeys_at_once: ("an order was followed that not all had", Bounds(2, epochs=2, orders=("a", "b"))),
    never_gives_up: ("it gave up, and starts", Bounds(2, epochs=3, most_tries=1)),
}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_found(bug: Callable[[Any, Decide], Decide]) -> None:
    guard = guard_module()
    guard.decide = bug(guard, guard.decide)  # type: ignore[attr-defined]
    what, bounds = BUGS[bug]
    with pytest.raises(ViolationError) as found:
        Explorer(guard, bounds).explore()
    assert found.value.args[0] == what, found.value.args


def test_it_is_one_file_of_the_standard_library_in_old_syntax() -> None:
    ast.parse(GUARD.read_text(), feature_version=(3, 8))
    assert len(GUARD.read_text().splitlines()) <= 500
