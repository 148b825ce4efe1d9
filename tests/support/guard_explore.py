"""Every interleaving of guards: what can be, when messages are lost, late or old and hosts fail at any time.

A world is each host's disk, the epoch whose process lives there and the orders it was given. Kept with it is
all that may still be heard there: whatever was ever told on any way to this world, in any order, any number
of times, or never. That is more than can really be, never less. So sending, losing, delaying, repeating and
cutting off are no steps of their own, and neither is the end of a guard between writing and telling: it has
told less than one that lives on, and can do nothing that the other cannot. A reboot is the end of a process
and a guard that reads its disk; a hang is trouble without an end. Worlds that differ in the names of hosts
are one.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Bounds:
    """How far to look."""

    members: int
    epochs: int
    orders: tuple[str, ...] = ("a",)
    """What the launcher gives, one after the other; a host may miss some. All have the first."""
    losses: int = 0
    """How many disks may be lost."""
    most_tries: int = 0
    """0: without end, and how many there were is not told apart."""


class Life(NamedTuple):
    """The epoch and the order under which a process was started."""

    epoch: int = 0
    order: str = ""


DEAD = Life()


class Host(NamedTuple):
    """What its guard has on disk (a number), the process that lives, the last order it was given, and the
    last epoch that was started there since nothing was alive anywhere: nobody knows that one."""

    told: int
    alive: Life
    given: int
    started: int = 0


class World(NamedTuple):
    hosts: tuple[Host, ...]
    losses: int = 0


Mail = tuple[tuple[int, ...], ...]
"""Mail[hearer][teller]: a bit for each thing told."""


Step = str | tuple[int, int, str]
"""What leads from a world to another: in words, or who tells what and does what."""


class ViolationError(Exception):
    """What must never be, and how it came about."""


class Explorer:
    """Over a guard module's `decide`, until no world has anything new to hear."""

    def __init__(self, guard: Any, bounds: Bounds) -> None:
        self.guard, self.bounds = guard, bounds
        self.most_tries = bounds.most_tries or 1 << 30
        # each new host goes beyond what it hears; later an epoch is a try, unless order or disk are new
        one = not bounds.losses and len(bounds.orders) == 1
        self.most_epoch = self.most_tries + bounds.members - 1 if one else 1 << 30
        self.tolds: list[Any] = []
        self.numbers: dict[Any, int] = {}
        self.steps: dict[tuple[Any, ...], tuple[Any, str]] = {}
        self.decided: dict[tuple[Any, ...], frozenset[tuple[int, str]]] = {}
        self.renamings = list(itertools.permutations(range(bounds.members)))
        self.mail: dict[World, Mail] = {}
        self.came: dict[World, tuple[World | None, Step]] = {}
        self.new = Host(self.number(guard.Told()), DEAD, 0)
        self.at_rest: dict[tuple[tuple[Host, ...], int], tuple[Host, ...]] = {}

    def number(self, told: Any) -> int:
        """A name for what was told, without what safety does not depend on."""
        told = told if self.bounds.most_tries else told._replace(tries=0)
        if told not in self.numbers:
            self.numbers[told] = len(self.tolds)
            self.tolds.append(told)
        return self.numbers[told]

    def explore(self) -> int:
        """How many worlds there are; ViolationError for the first that must not be."""
        first = World((self.new,) * self.bounds.members)
        self.mail[first] = ((0,) * self.bounds.members,) * self.bounds.members
        self.came[first] = (None, "all are new")
        todo, waiting = [(0, first)], {first}
        while todo:
            _, world = heapq.heappop(todo)
            waiting.remove(world)
            for step, came_to, told in self.successors(world, self.mail[world]):
                after, mail = self.folded(came_to, told)
                self.came.setdefault(after, (world, step))
                before = self.mail.get(after)
                joined = mail if before is None else union(before, mail)
                if joined is not before and joined != before:
                    self.mail[after] = joined
                    if after not in waiting:
                        waiting.add(after)
                        heapq.heappush(todo, (self.age(after), after))
                    self.hold(after)
        return len(self.mail)

    def hold(self, world: World) -> None:
        """ViolationError where processes that must never meet are alive."""
        alive = {h.alive for h in world.hosts} - {DEAD}
        if len({life.epoch for life in alive}) > 1:
            raise ViolationError("two epochs are alive", *self.path(world))
        if len(alive) > 1:
            raise ViolationError("two orders are alive", *self.path(world))

    def age(self, world: World) -> int:
        """Later worlds are looked at later, when all that may be heard in them is known."""
        phases = (self.guard.CLEAN, self.guard.RUN, self.guard.STOP)
        told = [self.tolds[h.told] for h in world.hosts]
        steps = sum(4 * t.epoch + phases.index(t.phase) for t in told) + sum(h.given for h in world.hosts)
        return steps + 100 * world.losses

    def path(self, world: World | None, *more: Step) -> list[str]:
        """The steps that lead to a world, in words, and more of them."""
        steps = [*more[::-1]]
        while world is not None:
            world, step = self.came[world]
            steps.append(step)
        return [step if isinstance(step, str) else self.worded(*step) for step in reversed(steps)]

    def worded(self, i: int, told: int, action: str) -> str:
        return f"{i} tells {tuple(self.tolds[told])}, {action or 'waits'}"

    def folded(self, world: World, mail: Mail) -> tuple[World, Mail]:
        """The same for all worlds that differ in the names of hosts alone."""
        before = world.hosts
        if all(h.alive == DEAD for h in before):
            before = tuple(Host(h.told, DEAD, h.given) for h in before)
        hosts = tuple(sorted(before))
        if hosts == before and len({*hosts}) == len(hosts):
            return World(hosts, world.losses), mail
        alike = (r for r in self.renamings if tuple([before[i] for i in r]) == hosts)
        renamed = [tuple([tuple([mail[i][j] for j in r]) for i in r]) for r in alike]
        return World(hosts, world.losses), min(renamed)

    def successors(self, world: World, mail: Mail) -> Iterator[tuple[Step, World, Mail]]:
        for i, host in enumerate(world.hosts):
            boxes = tuple(box for j, box in enumerate(mail[i]) if j != i)
            for told, action in self.decisions(host, (), boxes):
                yield from self.acted(world, mail, i, told, action)
            if host.alive != DEAD:
                dead = Host(host.told, DEAD, host.given, host.started)
                yield f"{i} dies", with_host(world, i, dead), mail
            for given in range(host.given + 1, len(self.bounds.orders)):
                order = self.bounds.orders[given]
                yield f"{i} is given {order!r}", with_host(world, i, host._replace(given=given)), mail
            if world.losses < self.bounds.losses and host != self.new:
                after = with_host(world, i, self.new._replace(started=host.started))._replace(
                    losses=world.losses + 1
                )
                yield f"{i} loses its disk", after, forgotten(world, mail, i)

    def acted(
        self, world: World, mail: Mail, i: int, told: int, action: str
    ) -> Iterator[tuple[Step, World, Mail]]:
        host, step = world.hosts[i], (i, told, action)
        before, now = self.tolds[host.told], self.tolds[told]
        anew = before.order and now.order and now.order != before.order
        given = (self.bounds.orders[: h.given + 1] for h in world.hosts)
        if anew and not self.bounds.losses and not all(now.order in g for g in given):
            raise ViolationError("an order was followed that not all had", *self.path(world, step))
        if action == "start":
            if now.tries >= self.most_tries or now.epoch > self.most_epoch:
                raise ViolationError("it starts more often than it may", *self.path(world, step))
            if now.epoch == host.started and any(h.alive.epoch == now.epoch for h in world.hosts):
                raise ViolationError("a process met one of an earlier life", *self.path(world, step))
        alive = {"start": Life(now.epoch, now.order), "stop": DEAD}.get(action, host.alive)
        started = now.epoch if action == "start" else host.started
        mail = heard(mail, i, told)
        yield step, with_host(world, i, Host(told, alive, host.given, started)), mail
        if action == "stop":
            slow = Host(told, host.alive, host.given, host.started)
            yield (i, told, "stop slowly"), with_host(world, i, slow), mail

    def decisions(
        self, host: Host, said: tuple[int, ...], boxes: tuple[int, ...]
    ) -> frozenset[tuple[int, str]]:
        """What a guard can do that has heard `said` of its first peers (-1: nothing), and anything or nothing
        of what lies in the boxes of the others."""
        key = (host[:3], said, boxes)
        if key not in self.decided:
            if boxes:
                last = boxes[0].bit_length() - 1
                found = self.decisions(host, (*said, last), boxes[1:])
                if boxes[0]:
                    found |= self.decisions(host, said, (boxes[0] & ~(1 << last), *boxes[1:]))
            else:
                found = frozenset(self.decide(host, said))
            self.decided[key] = found
        return self.decided[key]

    def decide(self, host: Host, said: tuple[int, ...]) -> Iterator[tuple[int, str]]:
        """With nothing wrong, with something wrong, and with something in the way; up to the last epoch."""
        for trouble, clear in (("", True), ("hangs", True), ("", False)):
            told, action = self.step(host, said, trouble, clear)
            if trouble and self.tolds[host.told].phase == told.phase == self.guard.RUN:
                raise ViolationError("it hangs, and runs on", tuple(told))
            if action == "start" and not clear:
                raise ViolationError("it starts with something in the way", tuple(told))
            if told.epoch <= self.bounds.epochs:
                yield self.number(told), action

    def step(
        self, host: Host, said: tuple[int, ...], trouble: str = "", clear: bool = True
    ) -> tuple[Any, str]:
        """What it tells when its peers said that (-1: nothing), and what it does; `clear`: nothing is in the
        way of a start."""
        key = (host.told, host.given, host.alive != DEAD, said, trouble, clear)
        if key not in self.steps:
            order, alive = self.bounds.orders[host.given], host.alive != DEAD
            here = self.guard.Here(order, alive, clear, trouble, due=clear)
            peers = {str(j): None if n < 0 else self.tolds[n] for j, n in enumerate(said)}
            decision = self.guard.decide(self.tolds[host.told], here, peers, self.most_tries)
            self.steps[key] = decision.told, decision.action
        return self.steps[key]

    def stuck(self) -> list[World]:
        """Worlds from which it does not come to what the orders say, once faults end and all is heard."""
        return [world for world in self.mail if not self.well(world.hosts, self.rested(world.hosts))]

    def lonely(self) -> list[World]:
        """Worlds in which some run on though a host is never heard of again."""
        hosts = range(self.bounds.members)
        return [
            world
            for world in self.mail
            for gone in hosts
            if any(h.alive != DEAD for i, h in enumerate(self.rested(world.hosts, gone)) if i != gone)
        ]

    def rested(self, hosts: tuple[Host, ...], gone: int = -1) -> tuple[Host, ...]:
        """The hosts when nothing changes any more, each in turn having heard all but who is gone."""
        way: list[tuple[Host, ...]] = []
        now = tuple(h._replace(started=0) for h in hosts)
        while now not in way and (now, gone) not in self.at_rest:
            way.append(now)
            for i in set(range(self.bounds.members)) - {gone}:
                now = self.turn(now, i, gone)
        end = self.at_rest.get((now, gone), now)
        self.at_rest.update(dict.fromkeys(((one, gone) for one in way), end))
        return end

    def turn(self, hosts: tuple[Host, ...], i: int, gone: int) -> tuple[Host, ...]:
        """One step of one host."""
        host = hosts[i]
        said = tuple([-1 if j == gone else h.told for j, h in enumerate(hosts) if j != i])
        told, action = self.step(host, said)
        alive = {"start": Life(told.epoch, told.order), "stop": DEAD}.get(action, host.alive)
        return (*hosts[:i], Host(self.number(told), alive, host.given), *hosts[i + 1 :])

    def well(self, before: tuple[Host, ...], hosts: tuple[Host, ...]) -> bool:
        """All run in one epoch if that was ordered, or gave up what was ordered before faults ended; none if
        one was told to stop. Where a launcher died between two orders, either is well: all run, or none."""
        wanted = {self.bounds.orders[h.given] for h in hosts}
        none = all(h.alive == DEAD for h in hosts)
        if "" in wanted:
            return none
        told = [self.tolds[h.told] for h in hosts]
        runs = all(
            h.alive == Life(t.epoch, t.order) == hosts[0].alive for h, t in zip(hosts, told, strict=True)
        )
        tried = any(self.tolds[h.told].order in wanted for h in before)
        gave_up = tried and any(t.tries >= self.most_tries for t in told)
        return (runs and not none) or (none and (gave_up or len(wanted) > 1))


def with_host(world: World, i: int, host: Host) -> World:
    return World((*world.hosts[:i], host, *world.hosts[i + 1 :]), world.losses)


def union(one: Mail, other: Mail) -> Mail:
    if one == other:
        return one
    pairs = zip(one, other, strict=True)
    return tuple([tuple([a | b for a, b in zip(x, y, strict=True)]) for x, y in pairs])


def heard(mail: Mail, i: int, told: int) -> Mail:
    """What `i` says now may reach the others, now or later."""
    bit = 1 << told
    if all(hearer == i or boxes[i] & bit for hearer, boxes in enumerate(mail)):
        return mail
    return tuple(
        [
            boxes if hearer == i else (*boxes[:i], boxes[i] | bit, *boxes[i + 1 :])
            for hearer, boxes in enumerate(mail)
        ]
    )


def forgotten(world: World, mail: Mail, i: int) -> Mail:
    """Without all mail from `i` and to it: a guard that finds nothing on its disk waits until that is too
    old. It hears what the others say from now on."""
    now = tuple(0 if j == i else 1 << host.told for j, host in enumerate(world.hosts))
    return tuple(
        now if hearer == i else tuple(0 if teller == i else box for teller, box in enumerate(boxes))
        for hearer, boxes in enumerate(mail)
    )
