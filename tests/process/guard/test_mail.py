"""Guards' messages over real sockets: who is believed, and for how long."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from guard_loaded import guard_module

GUARD = guard_module()
SILENT_S = 4.0


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Pair:
    """Two guards' mail, `a` and `b`, with a clock that stands still unless told otherwise."""

    def __init__(self, instance: str = "decode-0") -> None:
        ports = {"a": free_port(), "b": free_port()}
        self.a, self.b = (self.mail(instance, me, peer, ports) for me, peer in ("ab", "ba"))
        self.a.keys = self.b.keys = ["k1"]
        self.now_s = 1000.0

    def mail(self, instance: str, me: str, peer: str, ports: dict[str, int]) -> Any:
        place = {"host": me, "address": "127.0.0.1", "port": ports[me], "silent_s": SILENT_S}
        return GUARD.Mail({"instance": instance, **place, "peers": {peer: ["127.0.0.1", ports[peer]]}})

    def say(self, mail: Any, epoch: int) -> None:
        mail.say({"told": GUARD.Told(epoch)._asdict(), "end": []}, self.now_s)

    def hear(self, mail: Any) -> None:
        while select.select([mail.socket], [], [], 0.05)[0]:
            mail.hear(self.now_s)

    def talk(self, epoch: int = 1) -> None:
        """Each says something, and then answers the other."""
        for mail, other in ((self.a, self.b), (self.b, self.a)) * 2:
            self.say(mail, epoch)
            self.hear(other)

    def believed(self) -> Any:
        """What `b` thinks that `a` told."""
        return self.b.told("a", self.now_s)


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.a.socket.close()
    made.b.socket.close()


def test_what_was_just_said_is_believed_until_it_is_old(pair: Pair) -> None:
    pair.say(pair.a, 1)
    pair.hear(pair.b)
    assert pair.believed() is None, "it does not answer anything that b has said"
    pair.talk(epoch=2)
    assert pair.believed() == GUARD.Told(2)
    pair.now_s += SILENT_S
    assert pair.believed() == GUARD.Told(2)
    pair.now_s += 0.1
    assert pair.believed() is None


def test_another_key_says_nothing_and_any_common_one_is_enough(pair: Pair) -> None:
    pair.a.keys = ["other"]
    pair.talk()
    assert pair.believed() is None
    pair.a.keys = ["other", "k1"]
    pair.talk()
    assert pair.believed() == GUARD.Told(1)


def test_a_changed_byte_is_noticed(pair: Pair) -> None:
    pair.talk()
    pair.say(pair.a, 7)
    packet = pair.b.socket.recv(1 << 16)
    assert not pair.b.take(packet.replace(b'"epoch": 7', b'"epoch": 8'), pair.now_s)
    assert pair.believed() == GUARD.Told(1)
    assert pair.b.take(packet, pair.now_s)
    assert pair.believed() == GUARD.Told(7)


def test_late_and_repeated_messages_are_not_believed(pair: Pair) -> None:
    pair.talk()
    pair.say(pair.a, 7)
    packet = pair.b.socket.recv(1 << 16)
    pair.now_s += SILENT_S + 0.1
    pair.b.take(packet, pair.now_s)
    assert pair.believed() is None
    pair.talk(epoch=9)
    pair.b.take(packet, pair.now_s)
    assert pair.believed() == GUARD.Told(9)


def test_a_new_process_believes_nothing_that_was_said_before_it(pair: Pair) -> None:
    pair.talk()
    pair.say(pair.a, 7)
    packet = pair.b.socket.recv(1 << 16)
    pair.b.sent.clear()
    pair.b.heard.clear()
    pair.b.take(packet, pair.now_s)
    assert pair.believed() is None


@pytest.mark.parametrize(("name", "value"), [("instance", "decode-1"), ("to", "c"), ("from", "c")])
def test_what_is_meant_for_somebody_else_is_left(pair: Pair, name: str, value: str) -> None:
    pair.talk()
    pair.say(pair.a, 7)
    body = pair.b.socket.recv(1 << 16)[64:]
    other = GUARD.json.dumps({**GUARD.json.loads(body), name: value}).encode()
    assert not pair.b.take(GUARD.signature("k1", other) + other, pair.now_s)
    assert pair.believed() == GUARD.Told(1)
