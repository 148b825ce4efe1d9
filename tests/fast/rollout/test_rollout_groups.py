"""Which instances move first: whatever the fleet, both groups keep what each pool needs."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from launcher.rollout.groups import Member, first_group, joined, one_of_each


def members(chance: random.Random) -> list[Member]:
    """Up to five instances a pool, of one or two hosts; some share a host, some do not serve."""
    found, next_host = [], 0
    for pool in ("prefill", "decode"):
        for number in range(chance.randint(1, 5)):
            wide = chance.choice((1, 1, 2))
            shared = next_host > 0 and chance.random() < 0.2
            hosts = {f"h{next_host - shared + n}" for n in range(wide)}
            next_host += wide
            found.append(Member(f"{pool}-{number}", pool, frozenset(hosts), chance.random() < 0.85))  # type: ignore[arg-type]
    return found


def test_neither_group_falls_below_the_minimum_of_a_pool() -> None:
    chance, found = random.Random(7), 0
    for _ in range(3000):
        fleet = members(chance)
        minimum = {"prefill": chance.randint(0, 2), "decode": chance.randint(0, 2)}
        first = first_group(fleet, minimum)  # type: ignore[arg-type]
        if first is None:
            continue
        found += 1
        left = Counter(m.pool for m in fleet if m.serves and m.name not in first)
        moved = Counter(m.pool for m in fleet if m.name in first)
        for pool in ("prefill", "decode"):
            assert left[pool] >= max(1, minimum[pool]), (fleet, minimum, first)
            assert moved[pool] >= max(1, minimum[pool]), (fleet, minimum, first)
        hosts = {h for m in fleet if m.name in first for h in m.hosts}
        assert not hosts & {h for m in fleet if m.name not in first for h in m.hosts}, "hosts move once"
    assert found > 500


@pytest.mark.parametrize(
    ("prefill", "decode", "first"), [(2, 2, 2), (4, 2, 3), (4, 4, 4), (1, 1, 0), (2, 1, 0)]
)
def test_half_of_each_pool(prefill: int, decode: int, first: int) -> None:
    fleet = [Member(f"prefill-{n}", "prefill", frozenset({f"p{n}"}), True) for n in range(prefill)]
    fleet += [Member(f"decode-{n}", "decode", frozenset({f"d{n}"}), True) for n in range(decode)]
    assert len(first_group(fleet, {"prefill": 1, "decode": 1}) or ()) == first
    smallest = one_of_each(fleet)
    assert sorted(name.partition("-")[0] for name in smallest) == ["decode", "prefill"]


def test_what_shares_hosts_through_others_moves_together() -> None:
    a, b, c = (Member(n, "decode", frozenset(h), True) for n, h in (("a", "12"), ("b", "45"), ("c", "24")))
    assert [{m.name for m in g} for g in joined([a, b, c])] == [{"a", "b", "c"}]
