#!/usr/bin/env python3
"""Kills what hangs, so that those who wait at it are answered elsewhere; systemd starts it anew.

    watch.py CONFIG      (standard library, Python 3.8 or newer)

CONFIG maps a unit to a URL of it. A process that is stopped or stuck still takes connections, and who waits
at one waits for ever; with the process they end, and HAProxy asks another router whatever has had no byte of
its answer. Any HTTP answer is a sign of life. A refused connection is no hang: what starts, or ends what it
has begun, is left alone, and so is what has not answered yet in this life of its unit.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

EVERY_S, ANSWER_WITHIN_S = 1.0, 2.0
MOST_MISSES = 4  # in a row: a busy router is slow, but not silent for eleven seconds
SYSTEMCTL_WITHIN_S = 60
JOURNAL, CRITICAL = "/run/systemd/journal/socket", 2
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
ANSWERS, REFUSES, HANGS = "answers", "refuses", "hangs"


class Seen(NamedTuple):
    """What is known of a unit: the life in which it has answered, and how often in a row it did not."""

    life: str = ""
    misses: int = 0


def seen(before: Seen, said: str, life: str) -> Seen:
    """After one more question."""
    if said == ANSWERS:
        return Seen(life)
    if said == REFUSES or life != before.life:
        return before._replace(misses=0)
    return before._replace(misses=before.misses + 1)


def ask(url: str) -> str:
    """One question: does it answer, refuse, or hang?"""
    try:
        with OPENER.open(url, timeout=ANSWER_WITHIN_S) as answer:
            answer.read()
    except urllib.error.HTTPError:
        return ANSWERS
    except (OSError, http.client.HTTPException) as problem:
        reason = getattr(problem, "reason", problem)
        return HANGS if isinstance(reason, (socket.timeout, TimeoutError)) else REFUSES
    return ANSWERS


def life_of(unit: str) -> str:
    """systemd's name for the unit's present life; empty where it has none."""
    try:
        return os.readlink(f"/run/systemd/units/invocation:{unit}")
    except OSError:
        return ""


def kill(unit: str) -> None:
    """All of its processes, unless it is being stopped anyhow: then it may take its time."""
    words = ["systemctl", "show", "-p", "ActiveState,MainPID", "--", unit]
    out = subprocess.run(words, stdout=subprocess.PIPE, timeout=SYSTEMCTL_WITHIN_S, check=True).stdout
    told = dict(line.split("=", 1) for line in out.decode().splitlines())
    if told["ActiveState"] == "active":
        note(f"{unit} hangs, {MOST_MISSES} questions in a row: it is killed", told["MainPID"])
        subprocess.run(["systemctl", "kill", "-s", "KILL", "--", unit], timeout=SYSTEMCTL_WITHIN_S)


def note(text: str, pid: str) -> None:
    """A line in the log of the unit that this process belongs to."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
        door.sendto(f"MESSAGE={text}\nPRIORITY={CRITICAL}\nOBJECT_PID={pid}\n".encode(), JOURNAL)


def tell(words: str) -> None:
    """A word for systemd."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
        door.sendto(words.encode(), os.environ["NOTIFY_SOCKET"].replace("@", "\0", 1))


def watch(urls: dict[str, str]) -> None:
    """For ever."""
    known = dict.fromkeys(urls, Seen())
    tell("READY=1")
    with ThreadPoolExecutor(len(urls)) as threads:
        while True:
            for unit, said in threads.map(lambda unit: (unit, ask(urls[unit])), urls):
                known[unit] = seen(known[unit], said, life_of(unit))
                if known[unit].misses >= MOST_MISSES:
                    kill(unit)
                    known[unit] = Seen()
            tell("WATCHDOG=1")
            time.sleep(EVERY_S)


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        watch(json.load(file))
