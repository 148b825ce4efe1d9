"""Two epochs are never alive at once, all come together again, and each rule is missed that is taken away."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest
from guard_explore import Bounds, Explorer, ViolationError
from guard_loaded import GUARD, guard_module
from guard_rules import ALL_ORDERS, LONELY, RULES, STUCK

BOUNDS = {
    "two hosts, all orders, a disk lost": Bounds(2, epochs=3, orders=ALL_ORDERS, losses=1),
    "three hosts, a new start": Bounds(3, epochs=2, orders=("a", "b")),
    "three hosts, a disk lost": Bounds(3, epochs=3, losses=1),
    "three hosts that give up": Bounds(3, epochs=3, most_tries=2),
}
"""What takes seconds; all of it at once is scripts/explore-guard."""


@pytest.mark.parametrize("name", BOUNDS)
def test_every_interleaving(name: str, record_property: Callable[[str, object], None]) -> None:
    explorer = Explorer(guard_module(), BOUNDS[name])
    worlds = explorer.explore()
    print(f"{name}: {worlds} worlds")
    record_property("worlds", worlds)
    assert {h.alive.epoch for world in explorer.mail for h in world.hosts} >= {0, 1, 2}, (
        "it came to two epochs"
    )
    assert explorer.stuck() == []
    assert explorer.lonely() == []


@pytest.mark.parametrize("name", RULES)
def test_a_rule_that_is_taken_away_is_missed(name: str) -> None:
    rule = RULES[name]
    explorer = Explorer(guard_module(*rule.changed), rule.bounds)
    try:
        explorer.explore()
        found = STUCK if explorer.stuck() else LONELY if explorer.lonely() else "nothing"
    except ViolationError as violation:
        found = violation.args[0]
    assert found == rule.found


def test_it_is_one_file_of_the_standard_library_in_old_syntax() -> None:
    ast.parse(GUARD.read_text(), feature_version=(3, 8))
    assert len(GUARD.read_text().splitlines()) <= 500
