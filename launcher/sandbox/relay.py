"""A program: carries frames between two tap devices with delay, jitter, loss, rate; imports none of us.

Used where the kernel has no netem. Order is kept, and a direction holds 1000 frames at most.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import heapq
import json
import os
import random
import select
import struct
import sys
import time

# from linux/if_tun.h
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
MOST_FRAMES = 1000
LONGEST_FRAME = 70_000


class Direction:
    """Frames that came from one device and wait for the other."""

    def __init__(self, target: int, delay_s: float, jitter_s: float, loss: float, rate_bps: float) -> None:
        self.target = target
        self.delay_s, self.jitter_s, self.loss, self.rate_bps = delay_s, jitter_s, loss, rate_bps
        self.idle_at = 0.0
        self.last_due = 0.0
        self.waiting = 0

    def due(self, size: int, now: float) -> float | None:
        """When a frame of this size leaves; None when it is lost."""
        if random.random() < self.loss or self.waiting >= MOST_FRAMES:
            return None
        leaves = now
        if self.rate_bps:
            leaves = self.idle_at = max(now, self.idle_at) + size * 8 / self.rate_bps
        leaves += self.delay_s + random.uniform(-self.jitter_s, self.jitter_s)
        self.last_due = max(leaves, self.last_due, now)
        return self.last_due


def open_tap(name: str) -> int:
    """File descriptor of an existing tap device."""
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH14x", name.encode(), IFF_TAP | IFF_NO_PI))
    return tap


def receive(tap: int) -> list[bytes]:
    """Frames that are there now, some at most, so that the other direction has its turn."""
    frames: list[bytes] = []
    with contextlib.suppress(BlockingIOError):
        while len(frames) < 64:
            try:
                frames.append(os.read(tap, LONGEST_FRAME))
            except OSError as error:
                if error.errno == errno.EIO:  # the device is down; gone is another error, and our end
                    break
                raise
    return frames


def carry(directions: dict[int, Direction]) -> None:
    """Carry frames until killed."""
    queue: list[tuple[float, int, int, bytes]] = []
    number = 0
    poll = select.epoll()
    for tap in directions:
        poll.register(tap, select.EPOLLIN)
    while True:
        while queue and queue[0][0] <= time.monotonic():
            _, _, source, frame = heapq.heappop(queue)
            directions[source].waiting -= 1
            with contextlib.suppress(OSError):
                os.write(directions[source].target, frame)
        for tap, _ in poll.poll(max(0.0, queue[0][0] - time.monotonic()) if queue else -1):
            for frame in receive(tap):
                due = directions[tap].due(len(frame), time.monotonic())
                if due is not None:
                    number += 1
                    directions[tap].waiting += 1
                    heapq.heappush(queue, (due, number, tap, frame))


if __name__ == "__main__":
    one, other = (open_tap(name) for name in sys.argv[1:3])
    quality = json.loads(sys.argv[3])
    carry({one: Direction(other, **quality), other: Direction(one, **quality)})
