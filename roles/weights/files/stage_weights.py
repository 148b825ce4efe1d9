#!/usr/bin/env python3
"""Make a local folder hold the files of a manifest, from the shared file system and from other hosts.

    stage_weights.py [--verify] FOLDER ORIGIN MANIFEST

Runs as a job; standard library only, Python 3.8 or newer. FOLDER is a link to a revision in .NAME beside it,
and points to whole ones alone. A revision is brought block by block; each is compared with its sha256 before
it is written, and a journal says which are on the disk, so a run that was killed goes on where it stopped.
REVISION/.complete, written before the link, holds the sha256 of the manifest. --verify reads every byte of
what FOLDER has and says what is wrong; what is right of it is all that the next run keeps.
"""

import collections
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

sys.dont_write_bytecode = True  # nothing is left beside programs that a plan knows
from weights_peers import Bringing, Fleet  # noqa: E402

STREAMS = 16  # blocks at once: one stream does not fill a parallel file system, hundreds hurt its other users
TELL_EVERY_S = 1
RATE_OVER_S = 10  # so long a rate is of: what a host did at its start says little of when it ends
SAVE_EVERY_S = 0.5  # between syncs of the disk: what a power loss may take is read again, no more
COMPLETE, JOURNAL, MANIFEST = ".complete", ".blocks", ".manifest.json"
ALONE = {
    "host": "",
    "peers": {},
    "readers": 0,
    "read_mib_s": 0,
    "send_mib_s": 0,
    "keep": 2,
    "streams": STREAMS,
}


def main(argv):
    """Exit status; the last line of stderr says what is wrong and what to do."""
    verifies = argv[0] == "--verify"
    folder, origin, manifest = (Path(word) for word in argv[verifies:])
    try:
        with alone(folder):
            (verify if verifies else stage)(folder, origin, manifest)
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename or folder}: {error.strerror}: have the disk looked at", file=sys.stderr)
        return 1
    return 0


class Refused(Exception):
    """The folder cannot be made what the manifest says, or is not."""


class Block(NamedTuple):
    """A part of a file."""

    name: str
    offset: int
    size: int
    sha256: str


class Wanted(NamedTuple):
    """What a manifest says."""

    text: bytes
    files: dict  # name → {size, sha256}
    blocks: list  # in the order of their numbers
    digest: str  # of the file of blocks

    @property
    def revision(self):
        return hashlib.sha256(self.text).hexdigest()


def read(manifest):
    """The manifest and the blocks that it names."""
    try:
        text = manifest.read_bytes()
        told = json.loads(text)
        if "blocks" not in told:
            raise Refused(f"{manifest} knows no blocks: run `dsv32-launch weights manifest` anew")
        blocks = manifest.with_name(told["blocks"]["file"]).read_bytes()
    except OSError as error:
        raise Refused(f"{error.filename}: {error.strerror}: run `dsv32-launch weights manifest`") from None
    files, digest = told["files"], told["blocks"]["sha256"]
    outside = [name for name in files if name.startswith(("/", ".")) or ".." in Path(name).parts]
    if outside:
        raise Refused(f"{manifest}: {outside[0]!r} is no name for a file inside the model's folder")
    if hashlib.sha256(blocks).hexdigest() != digest:
        raise Refused(f"{manifest} names other blocks: run `dsv32-launch weights manifest` anew")
    return Wanted(text, files, list(numbered(files, told["blocks"]["size"], json.loads(blocks))), digest)


def numbered(files, size, digests):
    for name, entry in sorted(files.items()):
        for index, sha256 in enumerate(digests[name]):
            offset = index * size
            yield Block(name, offset, min(size, entry["size"] - offset), sha256)


class Store:
    """A revision's folder: the blocks that are in it and right, and the journal of those on the disk."""

    def __init__(self, folder, wanted):
        self.folder, self.wanted, self.blocks = folder, wanted, wanted.blocks
        self.whole = (1 << len(self.blocks)) - 1
        self.have = 0
        self.ended = False
        self.unsaved = []
        self.handles = {}
        self.lock = threading.Lock()

    def missing(self):
        return self.whole & ~self.have

    def open(self, trusted=()):
        """Every file, at its size. Here are the blocks that the journal or `trusted` files vouch for, and
        those whose bytes are there and right."""
        vouched = self._journal()
        kept = {n for n, e in self.wanted.files.items() if size(self.folder / n) == e["size"]}
        for name, entry in self.wanted.files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            handle = self.handles[name] = os.open(self.folder / name, os.O_RDWR | os.O_CREAT, 0o644)
            if name not in kept:
                os.ftruncate(handle, entry["size"])
        numbers = range(len(self.blocks))
        trusted = kept.intersection(trusted)
        known = {n for n in numbers if self.blocks[n].name in (kept if n in vouched else trusted)}
        self.have = bits(known | set(self.right(n for n in numbers if n not in known)))
        self.unsaved = [n for n in numbers if self.have >> n & 1]
        (self.folder / JOURNAL).write_text(self.wanted.digest + "\n")
        self.save()

    def _journal(self):
        with contextlib.suppress(OSError):
            first, *lines = (self.folder / JOURNAL).read_text().split("\n")[:-1]  # a line cut short is none
            if first == self.wanted.digest:
                return {int(line) for line in lines}
        return set()

    def right(self, numbers, count=lambda block, right: None):
        """Those of these blocks whose bytes are there and what they must be; `count` hears of each."""

        def is_right(number):
            block = self.blocks[number]
            handle = self.handles[block.name]
            right = has_data(handle, block) and sha256_of(handle, block) == block.sha256
            count(block, right)
            return number if right else None

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return [n for n in pool.map(is_right, numbers) if n is not None]

    def write(self, number, view):
        """Have a block whose bytes were compared."""
        block, done = self.blocks[number], 0
        while done < block.size:
            done += os.pwrite(self.handles[block.name], view[done:], block.offset + done)
        with self.lock:
            self.have |= 1 << number
            self.unsaved.append(number)

    def save(self):
        """Bring what was written to the disk, then say so in the journal."""
        with self.lock:
            saved, self.unsaved = self.unsaved, []
        if saved:
            for name in {self.blocks[n].name for n in saved}:
                os.fdatasync(self.handles[name])
            with open(self.folder / JOURNAL, "a") as journal:
                journal.write("".join(f"{n}\n" for n in saved))
                journal.flush()
                os.fsync(journal.fileno())


def bits(numbers):
    """These numbers as one int."""
    found = bytearray(max(numbers, default=0) // 8 + 1)
    for number in numbers:
        found[number // 8] |= 1 << number % 8
    return int.from_bytes(found, "little")


def has_data(handle, block):
    """Was anything of it ever written? What was not need not be read."""
    try:
        return os.lseek(handle, block.offset, os.SEEK_DATA) < block.offset + block.size
    except OSError:
        return False


def sha256_of(handle, block, piece=1 << 20):
    digest, done = hashlib.sha256(), 0
    buffer = memoryview(bytearray(piece))
    while done < block.size:
        count = os.preadv(handle, [buffer[: min(piece, block.size - done)]], block.offset + done)
        if not count:
            break
        digest.update(buffer[:count])
        done += count
    return digest.hexdigest()


def size(path):
    """Bytes of a file; -1 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return -1


class Progress:
    """How far it is, told to whoever started the job."""

    def __init__(self, total):
        self.total = total
        self.seen: collections.deque = collections.deque(maxlen=RATE_OVER_S // TELL_EVERY_S + 1)

    def tell(self, text, done, **more):
        """`per_s`: bytes a second of late; `left_s`: how long the rest takes so, None if nothing moves."""
        self.seen.append((time.monotonic(), done))
        (since_s, before), now_s = self.seen[0], self.seen[-1][0]
        per_s = (done - before) / max(now_s - since_s, 0.001) if done < self.total else 0
        left_s = round((self.total - done) / per_s) if per_s else None
        if done < self.total:
            text += f", {per_s / 2**20:.0f} MiB/s" + (f", {left_s} s left" if per_s else "")
        say(text, done, self.total, per_s=round(per_s), left_s=left_s, **more)


def say(text, done=0, total=0, **more):
    """Tell whoever follows the job how far it is."""
    place = os.environ.get("DSV32_PROGRESS")
    if place:
        with open(place + ".part", "w", encoding="utf-8") as file:
            json.dump({"text": text, "done": done, "total": total, **more}, file)
        os.replace(place + ".part", place)


def stage(folder, origin, manifest):
    """Make `folder` a whole revision: exactly the files that `manifest` names."""
    wanted = read(manifest)
    told = {**ALONE, **json.loads(os.environ.get("DSV32_FLEET", "{}"))}
    revisions = folder.with_name("." + folder.name)
    here = revisions / wanted.revision[:12]
    adopt(folder, here)
    complete = text_of(here / COMPLETE).strip() == wanted.revision
    # nobody may take the revision for complete while it changes
    remove(here / COMPLETE)
    sweep(here, wanted.files)
    prune(folder, here, told["keep"])
    store = Store(here, wanted)
    need_room(store)
    linked = reuse(revisions, here, wanted.files)
    store.open(wanted.files if complete else linked)
    write_synced(here / MANIFEST, wanted.text.decode())
    fleet = Fleet(told, os.environ.get("DSV32_KEY", ""), wanted.digest)
    wrong = bring(store, fleet, origin, told["streams"])
    if wrong:
        raise Refused("\n".join(wrong))
    publish(store, folder, wanted.revision)
    prune(folder, here, told["keep"])
    fleet.linger()


def adopt(folder, here):
    """What lies there under the name itself, put there by hand, is looked through like all else."""
    if folder.is_dir() and not folder.is_symlink() and not here.exists():
        here.parent.mkdir(exist_ok=True)
        os.rename(folder, here)
    here.mkdir(parents=True, exist_ok=True)


def sweep(folder, files):
    """Remove what the manifest does not name: an engine loads every shard that it finds."""
    named = {*files, JOURNAL, MANIFEST}
    for path in sorted(folder.rglob("*")):
        if not path.is_dir() and path.relative_to(folder).as_posix() not in named:
            print(f"removed {path}, which the manifest does not name")
            path.unlink()


def need_room(store):
    """Refuse before the first byte, not after the last that fits."""
    files = store.wanted.files
    missing = sum(e["size"] - taken(store.folder / n) for n, e in files.items())
    disk = os.statvfs(store.folder)
    free = disk.f_bavail * disk.f_frsize
    if missing > free:
        where = store.folder
        raise Refused(f"{where} needs {missing >> 20} MiB more, {free >> 20} MiB are free: make room there")


def taken(path):
    """Bytes of the disk that a file has."""
    try:
        return path.stat().st_blocks * 512
    except OSError:
        return 0


def reuse(revisions, here, files):
    """Names of files that are the same in another whole revision, and are links to those now."""
    linked = set()
    for other in revisions.iterdir():
        if other != here and (other / COMPLETE).exists():
            theirs = json.loads(text_of(other / MANIFEST))["files"]
            for name in (n for n, e in files.items() if theirs.get(n) == e and not (here / n).exists()):
                if size(other / name) == files[name]["size"]:
                    (here / name).parent.mkdir(parents=True, exist_ok=True)
                    os.link(other / name, here / name)
                    linked.add(name)
    return linked


def bring(store, fleet, origin, streams):
    """Have every block; what is wrong, else nothing. Peers get from here what is here already."""
    try:
        fleet.serve(store) if fleet.peers else None
    except OSError as error:
        raise Refused(f"{':'.join(map(str, fleet.places[fleet.me]))}: {error.strerror}") from None
    bringing = Bringing(store, fleet, origin)
    saver = Repeated(store.save, SAVE_EVERY_S)
    progress = Progress(sum(block.size for block in store.blocks))
    before = sum(b.size for n, b in enumerate(store.blocks) if store.have >> n & 1)

    def tell():
        done = before + bringing.bytes_read + bringing.bytes_fetched
        parts = {"read": bringing.bytes_read, "fetched": bringing.bytes_fetched, "sent": fleet.sent}
        progress.tell("bytes staged" if store.missing() else "weights complete", done, **parts)

    teller = Repeated(tell, TELL_EVERY_S)
    wrong = bringing.run(streams)
    teller.stop()
    saver.stop()
    if store.missing() and not wrong:
        wrong = [f"{store.folder}: stopped with blocks missing"]
    store.ended = not wrong
    return wrong


class Repeated:
    """Work that a thread does again and again, and once more at the end."""

    def __init__(self, work, every_s):
        self.work, self.every_s, self.stopped = work, every_s, threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.stopped.wait(self.every_s):
            self.work()

    def stop(self):
        self.stopped.set()
        self.thread.join()
        self.work()


def publish(store, folder, revision):
    """From one moment to the next, `folder` is this revision."""
    for path in [store.folder, *(p for p in store.folder.rglob("*") if p.is_dir())]:
        sync(path)
    lines = (f"{n}\n" for n in range(len(store.blocks)))  # in this order, whoever was quicker
    write_synced(store.folder / JOURNAL, f"{store.wanted.digest}\n{''.join(lines)}")
    write_synced(store.folder / COMPLETE, revision + "\n")
    new = folder.with_name(f".{folder.name}.new")
    remove(new)
    new.symlink_to(store.folder.relative_to(folder.parent))
    os.replace(new, folder)
    sync(folder.parent)


def prune(folder, here, keep):
    """Remove old revisions, but for `keep` in all, and those that the link names or a process has open."""
    linked = folder.resolve()

    def worth(path):
        return path == linked, (path / COMPLETE).exists(), path.stat().st_mtime

    others = [path for path in here.parent.iterdir() if path.is_dir() and path != here]
    for old in sorted(others, key=worth, reverse=True)[max(keep - 1, 0) :]:
        if old == linked or in_use(old):
            print(f"kept {old}, which is in use")
        else:
            print(f"removed {old}, an old revision")
            shutil.rmtree(old)


def in_use(folder):
    """Has any process mapped or opened a file of it?"""
    inside = f"{folder}/"
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if inside in (process / "maps").read_text(errors="replace"):
                return True
            if any(os.readlink(fd).startswith(inside) for fd in (process / "fd").iterdir()):
                return True
    return False


def verify(folder, origin, manifest):
    """Read all that is there; refused with each file that is not what the manifest says."""
    wanted = read(manifest)
    here = folder.resolve()
    if text_of(here / COMPLETE).strip() != wanted.revision:
        raise Refused(f"{folder} is not of this manifest: run `dsv32-launch up`")
    store = Store(here, wanted)
    wrong = verified(store)
    if wrong:
        remove(here / COMPLETE)
        store.unsaved = [n for n in range(len(store.blocks)) if store.have >> n & 1]
        (here / JOURNAL).write_text(wanted.digest + "\n")
        store.save()
        lines = (f"{here / n}: {count} blocks are wrong" for n, count in sorted(wrong.items()))
        raise Refused("\n".join([*lines, f"{', '.join(sorted(wrong))}: wrong bytes: run `dsv32-launch up`"]))


def verified(store):
    """Name → wrong blocks, of the files that have any, or are of another size; told as they are found."""
    files, here = store.wanted.files, store.folder
    odd = [n for n, e in files.items() if size(here / n) != e["size"]]
    for name in files:
        store.handles[name] = os.open(here / name if name not in odd else os.devnull, os.O_RDONLY)
    wrong = dict.fromkeys(odd, 0)
    progress = Progress(sum(block.size for block in store.blocks))
    done = [0]
    lock = threading.Lock()

    def count(block, right):
        with lock:
            done[0] += block.size
            if not right:
                wrong[block.name] = wrong.get(block.name, 0) + 1

    def tell():
        with lock:
            progress.tell("bytes verified", done[0], wrong=dict(wrong))

    teller = Repeated(tell, TELL_EVERY_S)
    store.have = bits(set(store.right(range(len(store.blocks)), count)))
    teller.stop()
    return wrong


@contextlib.contextmanager
def alone(folder):
    """One program at a time makes or reads a folder's revisions."""
    place = folder.with_name("." + folder.name)
    place.mkdir(parents=True, exist_ok=True)
    handle = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise Refused(f"{folder}: another program stages it: wait until its job ends") from None
    finally:
        os.close(handle)


def text_of(path):
    """A small file's text; empty where there is none."""
    with contextlib.suppress(OSError):
        return path.read_text()
    return ""


def write_synced(path, text):
    new = path.with_name(path.name + ".new")
    with new.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
    sync(path.parent)


def sync(folder):
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove(path):
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
