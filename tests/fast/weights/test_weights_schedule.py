"""weights_peers.choose over links of equal rate, in time that is counted and not waited for."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from types import ModuleType

HOSTS, BLOCKS, STREAMS = 16, 512, 4  # as in scripts/bench-weights
POLL = 15.0
"""Between questions of what a peer has, in times that a block takes on a link: 0.5 s where it takes 33 ms."""


class Links:
    """A source and hosts. A link carries one block at a time in each direction, in one unit of time.

    A host knows of a peer what that had when it last began to send it a block, or was last asked.
    """

    def __init__(self, peers: ModuleType, hosts: int, total: int) -> None:
        self.peers, self.whole = peers, (1 << total) - 1
        self.total = total
        self.names = tuple(f"h{n:02}" for n in range(hosts + 1))
        self.have = dict.fromkeys(self.names, 0)
        self.coming = dict.fromkeys(self.names, 0)
        self.known = {n: dict.fromkeys(self.names, 0) for n in self.names}
        self.busy = {n: dict.fromkeys(self.names, 0) for n in self.names}
        self.queue: dict[str, deque[tuple[str, int]]] = {n: deque() for n in self.names}
        self.sending: set[str] = set()
        self.free_at = dict.fromkeys(self.names, 0.0)
        self.sent = dict.fromkeys(self.names, 0)
        self.events: list[tuple[float, int, str, str, int]] = []
        self.order = itertools.count()

    def later(self, at: float, kind: str, host: str, number: int = 0) -> None:
        heapq.heappush(self.events, (at, next(self.order), kind, host, number))

    def run(self) -> float:
        """When the last host is whole. The source has all at once: its disk is no link."""
        self.have[self.names[0]] = self.whole
        for place, name in enumerate(self.names[1:]):
            self.later(POLL * place / len(self.names), "poll", name)
        while any(have != self.whole for have in self.have.values()):
            at, _, kind, host, number = heapq.heappop(self.events)
            if kind == "poll":
                self.known[host].update({n: h for n, h in self.have.items() if n != host})
                self.later(at + POLL, "poll", host)
            elif kind == "sent":
                self.sending.remove(host)
            else:
                self.have[host] |= 1 << number
                self.coming[host] &= ~(1 << number)
            self.ask(at)
        return at

    def ask(self, at: float) -> None:
        for me in self.names[1:]:
            while self.coming[me].bit_count() < STREAMS and (found := self.choice(me)):
                sender, number = found
                self.coming[me] |= 1 << number
                self.busy[me][sender] += 1
                self.queue[sender].append((me, number))
        for sender in self.names:
            if self.queue[sender] and sender not in self.sending:
                self.send(at, sender)

    def choice(self, me: str) -> tuple[str, int] | None:
        need = self.whole & ~self.have[me] & ~self.coming[me]
        others = {n: h for n, h in self.known[me].items() if n != me}
        busy = {n: b for n, b in self.busy[me].items() if n != me}
        view = self.peers.View(me, self.names, self.names[:1], self.total, need, others, busy)
        found: tuple[str, int] | None = self.peers.choose(view) if need else None
        return found

    def send(self, at: float, sender: str) -> None:
        host, number = self.queue[sender].popleft()
        self.known[host][sender] = self.have[sender]
        self.busy[host][sender] -= 1
        self.sending.add(sender)
        self.sent[sender] += 1
        self.free_at[host] = max(at, self.free_at[host]) + 1
        self.later(at + 1, "sent", sender)
        self.later(self.free_at[host], "came", host, number)


def test_sixteen_hosts_have_all_in_little_more_than_the_time_of_one(peers: ModuleType) -> None:
    links = Links(peers, HOSTS, BLOCKS)
    took = links.run()
    assert took <= 1.3 * BLOCKS
    assert links.sent[links.names[0]] <= 2 * BLOCKS
