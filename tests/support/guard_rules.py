"""The rules of the protocol: a change of the guard's text that takes each away, and how that shows."""

from __future__ import annotations

from typing import NamedTuple

from guard_explore import Bounds

ALL_ORDERS = ("", "a", "b", "")
"""Nothing yet, a start, another start, a stop."""
TWO = Bounds(2, epochs=2, orders=("", "a"))
ORDERS = Bounds(2, epochs=3, orders=ALL_ORDERS)
LOSS = Bounds(2, epochs=3, losses=1)
THREE_TRIES = Bounds(3, epochs=3, most_tries=2)
TRIES = Bounds(2, epochs=3, orders=("a", "b"), most_tries=2)
STUCK, LONELY = "it is stuck", "some run on alone"
OFTEN = "it starts more often than it may"
EARLIER = "a process met one of an earlier life"


class Rule(NamedTuple):
    """What is taken away, where that is looked for, and what is found."""

    changed: tuple[tuple[str, str], ...]
    bounds: Bounds
    found: str


def rule(text: str, other: str, bounds: Bounds, found: str) -> Rule:
    return Rule(((text, other),), bounds, found)


SILENT = '        if peer is None:\n            return f"{name}, of which nothing is heard"\n'
RULES = {
    "a start needs an order": rule(
        'if not me.order:\n        return "an order to start"', "if False:\n        pass", TWO, STUCK
    ),
    "a start needs to hear of all": rule(
        SILENT, "        if peer is None:\n            continue\n", TWO, "two epochs are alive"
    ),
    "a start needs all under one order": rule(
        'peer.order != me.order:\n            return f"{name}, which',
        'False:\n            return f"{name}, which',
        ORDERS,
        "two orders are alive",
    ),
    "a start needs all in one epoch": rule(
        "if peer.epoch != me.epoch or not (peer.able", "if not (peer.able", TWO, "two epochs are alive"
    ),
    "a start needs the promise of all": rule(
        " or not (peer.able or peer.phase == RUN):", ":", ORDERS, "two orders are alive"
    ),
    "a start needs nothing to be in the way": rule(
        "if me.able and not waits_for", "if not waits_for", TWO, "it starts with something in the way"
    ),
    "who gave up does not start": rule(
        "if me.tries >= most_tries:\n        return", "if False:\n        return", TRIES, OFTEN
    ),
    "clean means that nothing is alive": rule(
        "if here.alive or not here.free:", "if not here.free:", TWO, "two epochs are alive"
    ),
    "an epoch is never used twice": rule(
        "epoch = max(me.epoch + 1, highest if me.epoch",
        "epoch = max(me.epoch, highest if me.epoch",
        TWO,
        EARLIER,
    ),
    "who lost its disk promises what is above all": rule(
        "highest if me.epoch else highest + 1)", "highest)", LOSS, EARLIER
    ),
    "who lost its disk hears all first": rule(
        "return Decision(me._replace(phase=CLEAN, epoch=epoch, able=here.due) if known else me)",
        "return Decision(me._replace(phase=CLEAN, epoch=epoch, able=here.due))",
        LOSS,
        EARLIER,
    ),
    "the highest epoch is taken over": rule("epoch=highest, tries=tries", "tries=tries", TWO, STUCK),
    "the end of its own process ends an epoch": rule(
        "if here.trouble or not here.alive:", "if here.trouble:", TWO, STUCK
    ),
    "what hangs ends an epoch": rule(
        "if here.trouble or not here.alive:", "if not here.alive:", TWO, "it hangs, and runs on"
    ),
    "a peer's end ends it everywhere": rule(
        "if peer.epoch != me.epoch or peer.phase == STOP:", "if False:", TWO, STUCK
    ),
    "silence ends it": rule(
        'if peer is None:\n            return name, f"nothing was heard from {name}"',
        "if peer is None:\n            continue",
        TWO,
        LONELY,
    ),
    "another order ends it": rule(
        "if peer.order != me.order:\n            return name",
        "if False:\n            return name",
        ORDERS,
        STUCK,
    ),
    "who gave up ends it for all": rule(
        "if peer.phase == CLEAN and peer.tries >= most_tries:", "if False:", THREE_TRIES, STUCK
    ),
    "a start is followed when all have it": rule(
        "if new and me.order and not all(",
        "if False and not all(",
        ORDERS,
        "an order was followed that not all had",
    ),
    "a stop is followed at once": rule(
        "if new and me.order and not all(", "if me.order and not all(", ORDERS, STUCK
    ),
    "a new order ends what runs": rule(
        "        if me.order == before.order:\n            host, why = over",
        "        if True:\n            host, why = over",
        ORDERS,
        "two orders are alive",
    ),
    "a new order begins to count anew": rule(
        "return me._replace(order=new, tries=0)", "return me._replace(order=new)", TRIES, STUCK
    ),
    "an end is counted": rule("else tries + 1", "else tries", Bounds(2, epochs=3, most_tries=1), OFTEN),
}
