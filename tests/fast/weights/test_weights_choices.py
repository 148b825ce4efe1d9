"""weights_peers.py: which block from whom, as pure choices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from types import ModuleType

from hypothesis import given, settings
from hypothesis import strategies as st


def numbers(blocks: int) -> set[int]:
    return {n for n in range(blocks.bit_length()) if blocks >> n & 1}


@given(st.integers(1, 200), st.integers(1, 20))
def test_shares_are_all_blocks_and_each_once(peers: ModuleType, total: int, parts: int) -> None:
    shares = [numbers(peers.share(total, parts, part)) for part in range(parts)]
    assert sorted(n for each in shares for n in each) == list(range(total))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


class Simulation:
    """Hosts that choose in turns, whose every choice succeeds before the next one chooses."""

    def __init__(self, peers: ModuleType, hosts: int, readers: int, total: int) -> None:
        self.peers, self.readers, self.total = peers, readers, total
        self.have = {f"h{n:02}": 0 for n in range(hosts)}
        self.reads: Counter[int] = Counter()
        self.sends: Counter[tuple[str, int]] = Counter()

    def step(self, me: str) -> bool:
        """Whether it could fetch a block."""
        alive = tuple(sorted(self.have))
        need = ~self.have[me] & ((1 << self.total) - 1)
        others = {name: have for name, have in self.have.items() if name != me}
        busy = dict.fromkeys(others, 0)
        view = self.peers.View(me, alive, alive[: self.readers], self.total, need, others, busy)
        found = self.peers.choose(view) if need else None
        if found is None:
            return False
        name, block = found
        assert need >> block & 1, "it is missing here"
        if name == self.peers.ORIGIN:
            assert me in view.readers
            self.reads[block] += 1
        else:
            assert others[name] >> block & 1, "it is there"
            self.sends[name, block] += 1
        self.have[me] |= 1 << block
        return True

    def run(self, order: Sequence[int], deaths: Sequence[int] = ()) -> None:
        """In an order that repeats, until nobody can fetch more; every so many steps a host dies for good."""
        steps, left = 0, list(deaths)
        while True:
            names = list(self.have)
            moved = [self.step(names[n % len(names)]) for n in order if names]
            moved += [self.step(name) for name in names]
            steps += 1
            if left and len(self.have) > 1 and steps % 3 == 0:
                del self.have[names[left.pop() % len(names)]]
            elif not any(moved):
                return


@settings(max_examples=60)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 40), st.lists(st.integers(0, 99), max_size=9))
def test_every_host_gets_all_and_each_block_is_read_once(
    peers: ModuleType, hosts: int, readers: int, total: int, order: list[int]
) -> None:
    fleet = Simulation(peers, hosts, readers, total)
    fleet.run(order)
    assert set(fleet.have.values()) == {(1 << total) - 1}
    assert dict(fleet.reads) == dict.fromkeys(range(total), 1)
    if readers == 1 and hosts > 2:
        assert all(count == 1 for (name, _), count in fleet.sends.items() if name == "h00")


@settings(max_examples=60)
@given(
    st.integers(2, 9),
    st.integers(1, 9),
    st.integers(1, 40),
    st.lists(st.integers(0, 99), max_size=9),
    st.lists(st.integers(0, 99), min_size=1, max_size=4),
)
def test_hosts_that_die_cost_a_second_read_at_most_of_what_only_they_had(
    peers: ModuleType, hosts: int, readers: int, total: int, order: list[int], deaths: list[int]
) -> None:
    fleet = Simulation(peers, hosts, readers, total)
    fleet.run(order, deaths)
    assert set(fleet.have.values()) == {(1 << total) - 1}
    assert max(fleet.reads.values()) <= 1 + len(deaths)


def test_what_a_peer_has_is_not_read_unless_it_did_not_give_it(peers: ModuleType) -> None:
    """h01 of three is the home of block 1 and has not got it: h02 asks the reader, after a while."""
    view = peers.View(
        "h02", ("h00", "h01", "h02"), ("h00",), 3, 0b001, {"h00": 0b111, "h01": 0}, {"h00": 0, "h01": 0}
    )
    assert peers.choose(view) is None
    assert peers.choose(view, patient=True) == ("h00", 0)
    reads = view._replace(me="h00", have={"h01": 0b001, "h02": 0}, busy={"h01": 0, "h02": 0})
    assert peers.choose(reads) == ("h01", 0)
    assert peers.choose(reads, patient=True) == ("h01", 0)
    assert peers.choose(reads._replace(ungiven=0b001)) == ("", 0)
