#!/usr/bin/env python3
"""Guards one process of an instance: all processes of it run in the same epoch, or none does.

    guard.py CONFIG      (standard library, Python 3.8 or newer)

One guard on each host of an instance, started by systemd. It starts and stops the host's engine unit, and
nobody else does. Guards tell each other, once a second and signed, what is true of their host; each decides
for itself from that (`decide`, a pure function). There is no leader, and no controller while this runs.

An epoch is one life of the whole instance. A host is in one of these phases of it:

    clean   nothing of an earlier epoch is left on this host, nor will be: a promise, on disk before told
    run     the engine unit was started for this epoch: on disk before it is started
    stop    this epoch is over here, and its processes are being stopped

A host starts its process only when every other host has told that it is clean for, or runs, this very epoch.
Epochs only rise. So while a process of epoch 7 is alive, its host is in epoch 7 and no host can have heard it
promise epoch 8, which every start of epoch 8 needs: two epochs are never alive at once, whatever is lost,
delayed, cut off, frozen or rebooted. Clocks matter in one case only: a host that has lost its disk has
forgotten its promises, so it says and does nothing until they are too old to be believed.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import hmac
import http.client
import json
import os
import re
import select
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

CLEAN, RUN, STOP = "clean", "run", "stop"
FOLDER, SHOWN = "/var/lib/dsv32/guard", "/run/dsv32"
COLLECTED = ("epoch", "tries", "gave_up", "ready")  # by the node exporter of the host
BEAT_S, STILL_S, LOOK_EVERY_S, ANSWER_WITHIN_S = 1.0, 3.0, 2.0, 5.0
SYSTEMCTL_WITHIN_S, BUSY_WITHIN_S = 600, 30
KEPT_ENDS, KILLED = 50, ("2", "3")  # CLD_KILLED, CLD_DUMPED
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
CRITICAL, WARNING = "<2>", "<4>"  # systemd takes the priority of a line from these


class Told(NamedTuple):
    """What a guard says of its host. The disk keeps it, peers get it."""

    epoch: int = 0
    phase: str = STOP
    order: str = ""  # the launcher's wish that it follows: a name for this start; empty: it shall not run
    offered: str = ""  # the launcher's latest wish, followed once every host has it
    able: bool = False  # clean, and nothing here is in the way of a start
    tries: int = 0  # epochs in a row, under this order, that ended before they had been ready for long


class Here(NamedTuple):
    """What is true on this host now."""

    offered: str
    alive: bool  # anything of the engine's unit is, or is being started
    free: bool  # GPUs, ports, shared memory: nothing is left of an earlier process
    trouble: str = ""  # why what runs should not: it ended, hangs, or did not become ready in time
    settled: bool = False  # ready for so long that earlier tries do not count any more
    due: bool = True  # the pause before the next try is over, and the unit on disk is the ordered one


class Decision(NamedTuple):
    """What a guard tells from now on, what it does, and why its epoch ended, if it did."""

    told: Told
    action: str = ""  # start, stop, or empty
    why: str = ""
    host: str = ""  # the peer because of which it ended; empty: it ended here


def decide(before: Told, here: Here, peers: Mapping[str, Told | None], most_tries: int) -> Decision:
    """One step. A peer that has been silent for too long is None."""
    me = followed(before._replace(offered=here.offered), peers)
    heard = [p for p in peers.values() if p is not None]
    highest = max([me.epoch] + [p.epoch for p in heard])
    if me.phase == RUN:
        host, why = "", ("it was told to stop", "it was told to start anew")[bool(me.order)]
        if me.order == before.order:
            host, why = over(me, here, peers, most_tries)
        tries = 0 if here.settled else me.tries
        if not why:
            return Decision(me._replace(tries=tries))
        tries = 0 if me.order != before.order else tries + 1
        return Decision(me._replace(phase=STOP, tries=tries), "stop", why, host)
    if me.phase == STOP:
        if here.alive or not here.free:
            return Decision(me, "stop" if here.alive else "")
        # its own is spent; what it started before it lost its disk is no later than what all others tell
        epoch = max(me.epoch + 1, highest if me.epoch else highest + 1)
        known = me.epoch > 0 or len(heard) == len(peers)
        return Decision(me._replace(phase=CLEAN, epoch=epoch, able=here.due) if known else me)
    if here.alive:
        return Decision(me._replace(phase=STOP, able=False), "stop", "somebody else started its unit")
    tries = max([me.tries] + [p.tries for p in heard if p.order == me.order])
    me = me._replace(epoch=highest, tries=tries, able=here.free and here.due)
    if me.able and not waits_for(me, peers, most_tries):
        return Decision(me._replace(phase=RUN, able=False), "start")
    return Decision(me)


def followed(me: Told, peers: Mapping[str, Told | None]) -> Told:
    """With a new order, where there is one to follow: to stop at once, to start when every host has it.

    A launcher that was killed half way through giving an order has changed nothing then.
    """
    new = me.offered
    if new == me.order:
        return me
    if new and me.order and not all(p is not None and new in (p.offered, p.order) for p in peers.values()):
        return me
    return me._replace(order=new, tries=0)


def over(me: Told, here: Here, peers: Mapping[str, Told | None], most_tries: int) -> tuple[str, str]:
    """The peer because of which the epoch that runs here is over, and why; both empty while it is not."""
    if here.trouble or not here.alive:
        return "", here.trouble or "its process ended"
    for name, peer in sorted(peers.items()):
        if peer is None:
            return name, f"nothing was heard from {name}"
        if peer.order != me.order:
            return name, f"{name} was told " + ("to start anew" if peer.order else "to stop")
        if peer.epoch != me.epoch or peer.phase == STOP:
            return name, f"it ended on {name}"
        if peer.phase == CLEAN and peer.tries >= most_tries:
            return name, f"{name} gave up"
    return "", ""


def waits_for(me: Told, peers: Mapping[str, Told | None], most_tries: int) -> str:
    """What a clean host waits for before it starts; empty: it may."""
    if not me.order:
        return "an order to start"
    if me.tries >= most_tries:
        return f"a new order: it gave up after {me.tries} tries"
    for name, peer in sorted(peers.items()):
        if peer is None:
            return f"{name}, of which nothing is heard"
        if peer.order != me.order:
            return f"{name}, which has not got the same order"
        if peer.epoch != me.epoch or not (peer.able or peer.phase == RUN):
            return f"{name}, which cannot start: it is in phase {peer.phase} of epoch {peer.epoch}"
    return ""


class Mail:
    """Signed messages between guards. What is accepted answers something that this process said just now.

    Each message holds a new nonce, and the last one heard from whom it is for: what was recorded, or was long
    under way, echoes none that was sent within `silent_s`.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.instance, self.host = config["instance"], config["host"]
        self.peers = {name: (address, port) for name, (address, port) in config["peers"].items()}
        self.silent_s = config["silent_s"]
        self.keys: list[str] = []
        self.sent: dict[str, float] = {}
        self.echoes: dict[str, str] = {}
        self.heard: dict[str, tuple[float, dict[str, Any]]] = {}  # when what it answers was said, and it
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((config["address"], config["port"]))
        self.socket.setblocking(False)

    def say(self, told: Mapping[str, Any], now_s: float) -> None:
        """Tell every peer, once with each key: it may not have the newest one yet."""
        nonce = os.urandom(16).hex()
        self.sent = {n: s for n, s in self.sent.items() if now_s - s <= self.silent_s}
        self.sent[nonce] = now_s
        names = {"instance": self.instance, "from": self.host, "nonce": nonce}
        for peer, place in self.peers.items():
            body = json.dumps({**names, "to": peer, "echo": self.echoes.get(peer, ""), **told}).encode()
            for key in self.keys:
                with contextlib.suppress(OSError):  # no route to it now
                    self.socket.sendto(signature(key, body) + body, place)

    def hear(self, now_s: float) -> bool:
        """Take in a packet, if there is one. Did a peer say anything new?"""
        try:
            return self.take(self.socket.recv(1 << 16), now_s)
        except BlockingIOError:
            return False

    def take(self, packet: bytes, now_s: float) -> bool:
        """One packet, whoever sent it. Did it say anything new?"""
        mac, body = packet[:64], packet[64:]
        if not any(hmac.compare_digest(mac, signature(key, body)) for key in self.keys):
            return False
        message = json.loads(body)
        peer = message["from"]
        if (message["instance"], message["to"]) != (self.instance, self.host) or peer not in self.peers:
            return False
        self.echoes[peer] = message["nonce"]
        said_s = self.sent.get(message["echo"])
        old_s, old = self.heard.get(peer, (0.0, {}))
        if said_s is None or now_s - said_s > self.silent_s or said_s < old_s:
            return False
        self.heard[peer] = (said_s, message)
        return bool(old.get("told") != message["told"])

    def told(self, peer: str, now_s: float) -> Told | None:
        """What a peer last said; None when that is too long ago."""
        said_s, message = self.heard.get(peer, (0.0, {}))
        return Told(**message["told"]) if message and now_s - said_s <= self.silent_s else None


def signature(key: str, body: bytes) -> bytes:
    """64 bytes that only a holder of the key can make."""
    return hmac.new(key.encode(), body, hashlib.sha256).hexdigest().encode()


class Health:
    """Asks the process's own endpoints, in a thread: whether they answer, and whether tokens come."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config, self.life, self.ready_s = config, 0, 0.0

    def begin(self) -> None:
        """Forget what was seen of an earlier epoch, and watch."""
        self.life += 1
        self.began_s = self.answered_s = self.moved_s = clock_s()
        self.ready_s, self.tokens, self.silent = 0.0, -1.0, ""
        threading.Thread(target=self.watch, args=(self.life,), daemon=True).start()

    def watch(self, life: int) -> None:
        """Until the next epoch."""
        while life == self.life:
            self.ask(life)
            time.sleep(LOOK_EVERY_S)

    def ask(self, life: int) -> None:
        """Every endpoint, once."""
        config, running, tokens, url = self.config, 0.0, 0.0, ""
        try:
            for url in config["apis"]:
                get(url + config["ready_path"])
                text = get(url + "/metrics")
                running += total(text, config["running"])
                tokens += sum(total(text, name) for name in config["tokens"])
        except OSError:
            self.silent = url
            return
        if life != self.life:
            return
        self.answered_s = now_s = clock_s()
        self.ready_s = self.ready_s or now_s
        if not running or tokens != self.tokens:
            self.moved_s, self.tokens = now_s, tokens

    def trouble(self, now_s: float) -> str:
        """Why what runs should not go on. Only what has been ready can be found not to answer."""
        config, waited_s = self.config, now_s - self.began_s
        if not self.ready_s:
            return f"it was not ready within {waited_s:.0f} s" if waited_s > config["ready_within_s"] else ""
        if now_s - self.answered_s > config["unanswered_s"]:
            return f"{self.silent} has not answered for {now_s - self.answered_s:.0f} s"
        if now_s - self.moved_s > config["stalled_s"]:
            return f"requests run, and no token has come for {now_s - self.moved_s:.0f} s"
        return ""


def get(url: str) -> str:
    """The text of a good answer; OSError for any other, or none."""
    try:
        with OPENER.open(url, timeout=ANSWER_WITHIN_S) as answer:
            return str(answer.read().decode("utf-8", "replace"))
    except http.client.HTTPException as problem:
        raise OSError(str(problem)) from problem


def total(text: str, name: str) -> float:
    """The sum of a Prometheus metric over all its labels."""
    return sum(float(v) for v in re.findall(rf"^{re.escape(name)}(?:{{.*}})? (\S+)", text, re.MULTILINE))


def unit_state(unit: str) -> tuple[str, str]:
    """systemd's word for the unit, and how its last process ended, which by itself tells nothing."""
    words = ["systemctl", "show", "-p", "ActiveState,ExecMainCode,ExecMainStatus", "--", unit]
    out = subprocess.run(words, stdout=subprocess.PIPE, timeout=SYSTEMCTL_WITHIN_S, check=True).stdout
    told = dict(line.split("=", 1) for line in out.decode().splitlines())
    how = "was killed by signal" if told["ExecMainCode"] in KILLED else "ended with status"
    return told["ActiveState"], f"its process {how} {told['ExecMainStatus']}"


def left_alive(unit: str) -> bool:
    """Does the unit's cgroup still hold a process? systemd gives up on one that SIGKILL does not end."""
    return any(
        text_of(folder + "/cgroup.procs")
        for place in ("", "/systemd", "/unified")
        for folder, _, _ in os.walk(f"/sys/fs/cgroup{place}/system.slice/{unit}")
    )


def occupied(config: Mapping[str, Any]) -> str:
    """What is left of an earlier process, or of anybody's, that would keep a new one from starting."""
    for port in config["ports"]:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((config["address"], port))
            except OSError as problem:
                return f"port {port}: {(problem.strerror or '').lower()}"
    if not config["busy"]:
        return ""
    try:
        done = subprocess.run(config["busy"], stdout=subprocess.PIPE, timeout=BUSY_WITHIN_S, check=True)
    except (OSError, subprocess.SubprocessError) as problem:
        return str(problem)
    said = done.stdout.decode("utf-8", "replace").split()
    return f"the GPUs, which have {' '.join(said[:8])}" if said else ""


def sweep(patterns: list[str], folder: str = "/dev/shm") -> None:
    """Remove shared memory of these names that no process has mapped: its owners are dead."""
    found = [path for pattern in patterns for path in glob.glob(f"{folder}/{pattern}")]
    maps = "".join(text_of(path) for path in glob.glob("/proc/[0-9]*/maps")) if found else ""
    for path in found:
        if path not in maps:
            with contextlib.suppress(OSError):
                os.unlink(path)


def text_of(path: str) -> str:
    """A file's text; empty where there is none."""
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
    return ""


def write(path: str, text: str, mode: int = 0o600) -> None:
    """The whole file or nothing of it, on the disk when this returns."""
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    with open(os.open(path + "~", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + "~", path)
    handle = os.open(folder, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def clock_s() -> float:
    """Seconds that go on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Guard:
    """Looks, decides and acts once a second, and when a peer says something new."""

    def __init__(self, config_path: str) -> None:
        self.config_path, self.config_text = config_path, text_of(config_path)
        self.config = config = json.loads(self.config_text)
        self.place = f"{FOLDER}/{config['instance']}"
        saved = json.loads(text_of(self.place + ".json") or "{}")
        self.told = Told(**saved.get("told", {}))
        self.keys: dict[str, str] = saved.get("keys", {})  # offered, followed, and the one before that
        self.ends: list[dict[str, Any]] = saved.get("ends", [])
        self.boot: str = saved.get("boot", "")  # in which the process was started
        self.booted = text_of("/proc/sys/kernel/random/boot_id").strip()
        self.mail, self.health, self.doing = Mail(config), Health(config), ""
        self.began_s = self.ended_s = self.stepped_s = clock_s()
        self.working: subprocess.Popen[bytes] | None = None
        self.shown: dict[str, Any] = {}
        if not saved:  # what it promised before its disk was lost must become too old to be believed
            time.sleep(config["silent_s"])
            self.save()
        if self.told.phase == RUN:
            self.health.begin()

    def serve(self) -> None:
        """Until it is ended, or its config is another and nothing runs: systemd starts it anew then."""
        while self.told.phase == RUN or text_of(self.config_path) == self.config_text:
            self.step()
            now_s = clock_s()
            self.mail.say({"told": self.told._asdict(), "end": self.ends[-1:]}, now_s)
            until_s, new = now_s + BEAT_S, False
            while now_s < until_s and not new:
                select.select([self.mail.socket], [], [], until_s - now_s)
                now_s = clock_s()
                new = self.mail.hear(now_s)

    def step(self) -> None:
        """Look, decide, write down, act: nothing is done or told that is not on disk."""
        now_s, config = clock_s(), self.config
        if now_s - self.stepped_s > STILL_S:  # it stood still, and has missed what others said
            self.began_s = self.health.answered_s = self.health.moved_s = now_s
        self.stepped_s = now_s
        order = json.loads(text_of(self.place + ".order") or '{"run": "", "unit": "", "key": ""}')
        self.keys["offered"] = order["key"]
        self.mail.keys = sorted({k for k in self.keys.values() if k})
        peers = {name: self.mail.told(name, now_s) for name in self.mail.peers}
        if now_s - self.began_s < config["silent_s"] and None in peers.values() and order["run"]:
            return  # peers that had no time yet to answer this process are not silent
        here, occupant = self.look(order, now_s)
        decision = decide(self.told, here, peers, config["most_tries"])
        self.keep(decision, now_s)
        if decision.action:
            self.act(decision.action)
        waits = waits_for(self.told, peers, config["most_tries"]) if self.told.phase == CLEAN else ""
        if self.told.phase == CLEAN and not here.due:
            waits = waits or "its pause between tries, or an order for the unit that is on disk"
        self.show("" if self.told.phase == RUN else occupant or waits, here, peers)

    def look(self, order: Mapping[str, str], now_s: float) -> tuple[Here, str]:
        """What is true here, and what occupies it."""
        config, told, occupant, trouble = self.config, self.told, "", ""
        busy = self.working is not None and self.working.poll() is None
        active, ended = unit_state(config["unit"])
        alive = busy or active not in ("inactive", "failed") or left_alive(config["unit"])
        if told.phase == RUN:
            over = not busy and active in ("inactive", "failed", "deactivating")
            trouble = ended if over else self.health.trouble(now_s)
            trouble = "its host was started anew" if self.boot != self.booted else trouble
        gave_up = told.order == order["run"] and told.tries >= config["most_tries"]
        starts = told.phase == CLEAN and order["run"] and not gave_up
        if not alive and (starts or told.phase == STOP):
            sweep(config["shm"])
            occupant = occupied(config)
        pauses_s = [0.0, *config["pauses_s"]]
        rested = now_s - self.ended_s >= pauses_s[min(told.tries, len(pauses_s) - 1)]
        unit = hashlib.sha256(text_of(f"/etc/systemd/system/{config['unit']}").encode()).hexdigest()
        due = rested and unit == order["unit"]
        settled = 0 < self.health.ready_s < now_s - config["settled_s"]
        return Here(order["run"], alive, not occupant, trouble, settled, due), occupant

    def keep(self, decision: Decision, now_s: float) -> None:
        """Write down what was decided; then peers may hear it."""
        before, self.told = self.told, decision.told
        if self.told.order != before.order and self.keys["offered"] != self.keys.get("followed"):
            self.keys["before"] = self.keys.get("followed", "")
        if self.told.order != before.order:
            self.keys["followed"] = self.keys["offered"]
        if decision.why:
            self.ended_s = now_s
            self.ends = [*self.ends, self.end(decision, before)][-KEPT_ENDS:]
        if decision.action == "start":
            self.boot = self.booted
            print(f"starts epoch {self.told.epoch}", flush=True)
        if self.told != before:
            self.save()

    def save(self) -> None:
        """Onto the disk."""
        kept = {"told": self.told._asdict(), "keys": self.keys, "ends": self.ends, "boot": self.boot}
        write(self.place + ".json", json.dumps(kept))

    def end(self, decision: Decision, before: Told) -> dict[str, Any]:
        """How an epoch ended: as the peer where it ended first has it, where that told."""
        host, why = decision.host or self.config["host"], decision.why
        for first in self.mail.heard[decision.host][1]["end"] if decision.host in self.mail.heard else ():
            if first["epoch"] == before.epoch:
                host, why = first["host"], first["why"]
        print(f"{WARNING}epoch {before.epoch} is over: {host}: {why}", flush=True)
        if decision.told.tries >= self.config["most_tries"]:
            print(f"{CRITICAL}gives up after {decision.told.tries} tries", flush=True)
        return {"epoch": before.epoch, "order": before.order, "host": host, "why": why, "when": time.time()}

    def act(self, action: str) -> None:
        """Have systemd start or stop the unit, and go on meanwhile."""
        if self.working is not None and self.working.poll() is None and self.doing == action:
            return
        self.doing = action  # systemd replaces a start that is under way by a stop
        self.health.life += 1
        self.working = subprocess.Popen(["systemctl", "-q", action, "--", self.config["unit"]])
        if action == "start":
            self.health.begin()

    def show(self, waits: str, here: Here, peers: Mapping[str, Told | None]) -> None:
        """Leave word for the launcher, and for who collects metrics, when there is anything new."""
        name, ready = self.config["instance"], self.told.phase == RUN and self.health.ready_s > 0
        gave_up = bool(self.told.order) and self.told.tries >= self.config["most_tries"]
        now = {**self.told._asdict(), "alive": here.alive, "waits": waits, "gave_up": gave_up, "ready": ready}
        now = {**now, "silent": sorted(n for n, p in peers.items() if p is None), "ends": self.ends}
        if now != self.shown:
            write(f"{SHOWN}/guard-{name}.json", json.dumps(now))
            lines = (f'dsv32_guard_{n}{{instance="{name}"}} {now[n]:d}\n' for n in COLLECTED)
            write(f"{SHOWN}/metrics/guard-{name}.prom", "".join(lines), 0o644)
            self.shown = now


if __name__ == "__main__":
    Guard(sys.argv[1]).serve()
