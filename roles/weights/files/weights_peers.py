"""Hosts that stage one model hand its blocks to each other; standard library only, Python 3.8 or newer.

Blocks are numbered. Sets of them are ints: bit n is block n. Each block is read from the shared file system
by one of the readers; where not all hosts read, it goes to one other host first, its home, which passes it
on, so that a reader sends each block once. A host that does not answer is left out; others do its part.
"""

import contextlib
import errno
import functools
import hashlib
import hmac
import json
import operator
import os
import socket
import threading
import time
from typing import NamedTuple

DEAD_AFTER_S = 10  # a host that has just been started by SSH answers within that, too
BEGINS_WITHIN_S = 5  # a host that refuses: jobs of one run begin within that
REFUSED_WITHIN_S = 3
IDLE_S = 20  # for a block to move on a connection
POLL_S = 0.5  # between questions of what a peer has; each block that comes tells that, too
PATIENCE_S = 5  # without a block, before a host asks those whom it otherwise spares
STALLED_S = 30  # in one read of the shared file system, before others read in its place
LINGER_S = 30  # for peers that still miss blocks and ask for none
SENDS = 4  # blocks that leave a host at once: one after the other they are whole sooner
QUEUED_S = (
    IDLE_S / 2
)  # for one of these turns, then a block leaves beside them: whoever waits must hear of it
WAKE = 1 << 16  # bytes that a thread sleeps for: woken by each packet, sixteen hosts keep two cores busy
CHUNK = 1 << 20  # bytes sent before others have their turn at a limited rate
ORIGIN = ""


class Wrong(Exception):
    """Bytes that are not what the manifest says."""


class View(NamedTuple):
    """What a host knows when it chooses its next block. Names are sorted: all come to the same shares."""

    me: str
    alive: tuple  # names, `me` among them
    readers: tuple  # those of `alive` that read the shared file system
    total: int  # blocks that there are
    need: int  # blocks that are not here and not on their way
    have: dict  # peer → blocks that it has
    busy: dict  # peer → blocks that are on their way from it
    ungiven: int = 0  # blocks that a peer has, and did not give when it was asked
    spoilt: int = 0  # blocks of which a peer gave wrong bytes: any reader reads them


@functools.lru_cache(maxsize=512)
def share(total, parts, part):
    """Every block whose number is `part` modulo `parts`."""
    return int("".join("1" if n % parts == part else "0" for n in reversed(range(total))) or "0", 2)


def choose(view, patient=False):
    """(peer or ORIGIN, block) to fetch next, or None: nothing can be had, or others are to have it first.

    A reader reads no block that a peer has, unless that did not give it. Patient means: nothing has come for
    long, so readers send more than homes their own.
    """
    homes = [name for name in view.alive if name not in view.readers]
    mine = share(view.total, len(homes), homes.index(view.me)) if view.me in homes else 0
    peers = [name for name in view.alive if name != view.me]
    if view.me in view.readers:
        own = view.need & (share(view.total, len(view.readers), view.readers.index(view.me)) | view.spoilt)
        for name in peers:
            own &= ~view.have[name] | view.ungiven
        if own:
            return ORIGIN, first(own, 0)
    at = view.alive.index(view.me)
    behind = len(view.alive) - at
    # whoever sends me least; of equal ones a reader, for whose link all wait, then the next in the row,
    # which is another one for each host

    def turn(name):
        place = (view.alive.index(name) + behind) % len(view.alive)
        return view.busy[name], name not in view.readers, place

    for name in sorted(peers, key=turn):
        there = view.need & view.have[name]
        if homes and name in view.readers and not patient:
            read = share(view.total, len(view.readers), view.readers.index(name))
            there &= ~(read & ~mine)
        if there:
            return name, first(rarest(there & mine or there, view), view.total * at // len(view.alive))
    return None


def rarest(blocks, view):
    """Those of these blocks that few hosts have: each host rules out what it has, if others are left."""
    for name, have in sorted(view.have.items()):
        if name not in view.readers:
            blocks = blocks & ~have or blocks
    return blocks


def first(blocks, start):
    """The first of these blocks from `start` on, else the first of all."""
    later = blocks >> start
    return start + lowest(later) if later else lowest(blocks)


def lowest(blocks):
    return (blocks & -blocks).bit_length() - 1


class Pace:
    """At most so many bytes a second; 0 is no limit."""

    def __init__(self, bytes_per_s):
        self.bytes_per_s, self.free_at, self.lock = bytes_per_s, 0.0, threading.Lock()

    def wait(self, count):
        if self.bytes_per_s:
            with self.lock:
                now = time.monotonic()
                self.free_at = max(self.free_at, now) + count / self.bytes_per_s
                wait_s = self.free_at - now
            time.sleep(wait_s)


class Peer:
    """Another host, as far as this one knows."""

    def __init__(self, name, place):
        self.name, self.place = name, place
        self.have, self.bad, self.busy, self.ungiven = 0, 0, 0, 0
        self.seen_s, self.ever = time.monotonic(), False
        self.asked = False  # and it has answered, or did not
        self.ended, self.reads, self.refused = False, True, False
        self.idle = []  # connections that nobody uses

    @property
    def alive(self):
        """Heard of lately; at first it is trusted to come."""
        return time.monotonic() - self.seen_s < (BEGINS_WITHIN_S if self.refused else DEAD_AFTER_S)

    def told(self, state):
        self.have, self.ended, self.reads = int(state["have"], 16), state["ended"], state["reads"]
        self.seen_s, self.ever, self.asked, self.refused = time.monotonic(), True, True, False

    def lost(self, error, block):
        """Whoever refuses, and did not before, has ended."""
        self.asked = True
        self.ungiven |= 0 if block is None else 1 << block
        if getattr(error, "errno", None) == errno.ECONNREFUSED:
            self.refused = True
            self.seen_s = float("-inf") if self.ever else self.seen_s


class Connection:
    """One conversation with a peer: a line of JSON there, a line and the bytes of a block back."""

    def __init__(self, peer, fleet):
        self.socket = socket.create_connection(tuple(peer.place), timeout=REFUSED_WITHIN_S)
        self.socket.settimeout(IDLE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb", buffering=1 << 16)
        nonce = self.file.readline(200).decode().strip()
        send_line(self.socket, {"host": fleet.me, "mac": fleet.signature(nonce, fleet.me)})

    def ask(self, block, buffer=None):
        """Its state; bytes of the block are in `buffer` then, `state["size"]` of them."""
        send_line(self.socket, {"get": block})
        line = self.file.readline()
        if not line.endswith(b"\n"):
            raise OSError("it has hung up")
        state = json.loads(line)
        got = 0
        while got < state["size"]:
            self._sleep_for(min(WAKE, state["size"] - got))
            count = self.file.readinto1(buffer[got : state["size"]])  # type: ignore[attr-defined]
            if not count:
                raise OSError("it has hung up")
            got += count
        self._sleep_for(1)
        return state

    def _sleep_for(self, count):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)

    def close(self):
        for part in (self.file, self.socket):
            with contextlib.suppress(OSError):
                part.close()


def send_line(sock, value):
    sock.sendall(json.dumps(value).encode() + b"\n")


class Fleet:
    """The hosts that stage one manifest: who has what, and who is asked for what."""

    def __init__(self, told, key_place, digest):
        """`told`: {host, peers: {name: [address, port]} of all hosts, readers, read_mib_s, send_mib_s};
        `digest`: of what is staged. Whoever has another one, or another key, is no peer."""
        self.me, self.places = told["host"], told["peers"]
        self.key_place, self.digest = key_place, digest
        self.most_readers = told["readers"] or max(len(self.places), 1)
        self.sends = threading.Semaphore(SENDS)
        self.sending = Pace(told["send_mib_s"] << 20)
        self.reading = Pace((told["read_mib_s"] << 20) / self.most_readers)
        self.peers = {n: Peer(n, p) for n, p in self.places.items() if n != self.me and key_place}
        self.unread = ""  # why this host does not read the shared file system
        self.stuck = False  # in a read of it that does not end
        self.wrong = {}  # block → what is wrong with it on the shared file system, as whoever read it says
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.sent = 0

    @property
    def reads(self):
        return not self.unread and not self.stuck

    def signature(self, nonce, host):
        """What only a host of this run can say."""
        with open(
            self.key_place
        ) as file:  # anew: the run that looks after this host may be another one by now
            key = file.read()
        return hmac.new(key.encode(), f"{nonce} {host} {self.digest}".encode(), hashlib.sha256).hexdigest()

    def alive(self):
        """Peers that take part."""
        return [peer for peer in self.peers.values() if peer.alive]

    def view(self, total, need):
        alive = self.alive()
        able = sorted([p.name for p in alive if p.reads] + ([self.me] if self.reads else []))
        return View(
            self.me,
            tuple(sorted([self.me, *(p.name for p in alive)])),
            tuple(able[: self.most_readers]),
            total,
            need,
            {p.name: p.have & ~p.bad for p in alive},
            {p.name: p.busy for p in alive},
            functools.reduce(operator.or_, (p.ungiven for p in alive), 0),
            functools.reduce(operator.or_, (p.bad for p in alive), 0),
        )

    def asked(self):
        """Is it known of each peer what it has, or that it does not answer?"""
        return all(peer.asked for peer in self.alive())

    def fetch(self, name, block, buffer):
        """Bytes of a block in `buffer`; OSError where the peer does not give it."""
        peer = self.peers[name]
        with self.lock:
            peer.busy += block is not None
            connection = peer.idle.pop() if peer.idle else None
        try:
            connection = connection or Connection(peer, self)
            state = connection.ask(block, buffer)
        except (OSError, ValueError) as error:
            if connection:
                connection.close()
            with self.lock:
                peer.lost(error, block)
            raise OSError(f"{name}: {error}") from None
        finally:
            with self.lock:
                peer.busy -= block is not None
        with self.lock:
            peer.told(state)
            self.wrong.update((int(number), text) for number, text in state["wrong"].items())
            peer.idle.append(connection)
        return state["size"]

    def watch(self, name):
        """Ask a peer again and again what it has, while no block comes from it that tells that, too."""
        peer = self.peers[name]
        while True:
            if not peer.ever or time.monotonic() - peer.seen_s > POLL_S / 2:
                with contextlib.suppress(OSError):
                    self.fetch(name, None, None)
                    with self.changed:
                        self.changed.notify()
            time.sleep(POLL_S)

    def serve(self, store):
        """Answer peers until this program ends; OSError when the port is taken."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(tuple(self.places[self.me]))
        listener.listen(256)
        in_background(self._accept, listener, store)
        for name in self.peers:
            in_background(self.watch, name)

    def _accept(self, listener, store):
        while True:
            connection, _ = listener.accept()
            in_background(self._answer, connection, store)

    def _answer(self, sock, store):
        with sock, contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            sock.settimeout(DEAD_AFTER_S)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            nonce = os.urandom(32).hex()
            sock.sendall(nonce.encode() + b"\n")
            with sock.makefile("rb") as file:
                hello = json.loads(file.readline(1000))
                if not hmac.compare_digest(hello["mac"], self.signature(nonce, hello["host"])):
                    return
                sock.settimeout(None)
                for line in file:
                    self._reply(sock, store, json.loads(line)["get"])

    def _reply(self, sock, store, number):
        block = store.blocks[number] if number is not None and store.have >> number & 1 else None
        state = {"have": f"{store.have:x}", "ended": store.ended, "reads": self.reads, "wrong": self.wrong}
        sock.settimeout(IDLE_S)
        send_line(sock, {**state, "size": block.size if block else 0})
        if block:
            self.asked_s = time.monotonic()
            with self._turn(), open(store.folder / block.name, "rb") as file:
                for offset in range(block.offset, block.offset + block.size, CHUNK):
                    count = min(CHUNK, block.offset + block.size - offset)
                    self.sending.wait(count)
                    sock.sendfile(file, offset, count)
            with self.lock:
                self.sent += block.size
        sock.settimeout(None)

    @contextlib.contextmanager
    def _turn(self):
        mine = self.sends.acquire(timeout=QUEUED_S)
        try:
            yield
        finally:
            if mine:
                self.sends.release()

    def linger(self):
        """Stay for peers that still miss blocks, or are yet to begin."""
        self.asked_s = time.monotonic()
        while any(not p.ended for p in self.alive()):
            if time.monotonic() - self.asked_s > LINGER_S:
                return
            time.sleep(POLL_S)


def in_background(work, *words):
    threading.Thread(target=work, args=words, daemon=True).start()


class Bringing:
    """Makes a store whole, by as many streams at once as it is told."""

    def __init__(self, store, fleet, origin):
        self.store, self.fleet, self.origin = store, fleet, origin
        self.coming = 0  # blocks on their way
        self.failed = ""  # why nothing more can be done here
        self.got_s = time.monotonic()
        self.bytes_read = self.bytes_fetched = 0
        self.reading_since = {}  # thread → when its read of the shared file system began

    def run(self, streams):
        """Until the store is whole, or no more can be had; what is wrong, a line each."""
        workers = [threading.Thread(target=self._work, daemon=True) for _ in range(streams)]
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers):
            time.sleep(0.05)
            with self.fleet.lock:
                begun = list(self.reading_since.values())
            self.fleet.stuck = any(time.monotonic() - since > STALLED_S for since in begun)
        return [self.failed] if self.failed else [text for _, text in sorted(self.fleet.wrong.items())]

    def _work(self):
        buffer = memoryview(bytearray(max((b.size for b in self.store.blocks), default=0)))
        while True:
            with self.fleet.changed:
                found = self._next()
                while found is None and not self._ended():
                    self.fleet.changed.wait(POLL_S)
                    found = self._next()
                if found is None:
                    return
                self.coming |= 1 << found[1]
                self.fleet.changed.notify()  # there may be more
            try:
                self._bring(found[0], found[1], buffer)
            finally:
                with self.fleet.changed:
                    self.coming &= ~(1 << found[1])
                    self.fleet.changed.notify()

    def _missing(self):
        return self.store.missing() & ~sum(1 << number for number in self.fleet.wrong)

    def _next(self):
        need = 0 if self.failed else self._missing() & ~self.coming
        if not need:
            return None
        view = self.fleet.view(len(self.store.blocks), need)
        found = choose(view, patient=time.monotonic() - self.got_s > PATIENCE_S)
        return None if found and found[0] == ORIGIN and not self.fleet.asked() else found

    def _ended(self):
        missing = self._missing()
        if self.failed or not missing:
            return True
        fleet = self.fleet.view(len(self.store.blocks), 0)
        if not (fleet.readers or self.coming or any(have & missing for have in fleet.have.values())):
            self.failed = self.fleet.unread
        return bool(self.failed)

    def _bring(self, name, number, buffer):
        block = self.store.blocks[number]
        view = buffer[: block.size]
        try:
            if name == ORIGIN:
                self._read(block, view)
            elif self.fleet.fetch(name, number, view) != block.size:
                return  # it has it no more
            if hashlib.sha256(view).hexdigest() != block.sha256:
                raise Wrong(f"{block.size} bytes from {block.offset} on are not what the manifest says")
        except Wrong as wrong:
            do = "restore that file, or write the manifest anew"
            with self.fleet.lock:
                if name == ORIGIN:
                    self.fleet.wrong[number] = f"{self.origin / block.name}: {wrong}: {do}"
                else:
                    self.fleet.peers[name].bad |= 1 << number
            return
        except OSError as error:
            if name == ORIGIN:
                self.fleet.unread = f"{self.origin / block.name}: {error.strerror}"
            return
        self._keep(name, number, view)

    def _keep(self, name, number, view):
        try:
            self.store.write(number, view)
        except OSError as error:
            self.failed = (
                f"{self.store.folder}: {error.strerror}: make room there, or have the disk looked at"
            )
            return
        with self.fleet.lock:
            self.got_s = time.monotonic()
            if name == ORIGIN:
                self.bytes_read += len(view)
            else:
                self.bytes_fetched += len(view)

    def _read(self, block, view):
        """Bytes of a block from the shared file system, and a trace of how long that takes."""
        me = threading.get_ident()
        self.fleet.reading.wait(block.size)
        self.reading_since[me] = time.monotonic()
        try:
            with open(self.origin / block.name, "rb", buffering=0) as file:
                file.seek(block.offset)
                got = 0
                while got < block.size:
                    count = file.readinto(view[got:])
                    if not count:
                        raise Wrong(f"it ends at byte {block.offset + got}")
                    got += count
                # the page cache is for the engines: what was only copied is dropped from it again
                os.posix_fadvise(file.fileno(), block.offset, block.size, os.POSIX_FADV_DONTNEED)
        finally:
            del self.reading_since[me]
