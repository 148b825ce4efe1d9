#!/usr/bin/env python3
"""Make a local folder hold the files of a manifest, copied from the shared file system and verified.

    stage_weights.py FOLDER SOURCE MANIFEST

Runs as a job; standard library only, Python 3.8 or newer. Files that are there are read and kept if their
sha256 is right; the others are copied, hashed on the way, and renamed into place one by one, so a run that
was killed goes on where it stopped. FOLDER/.complete, written last, holds the sha256 of the manifest.
"""

import contextlib
import hashlib
import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

BLOCK = 8 << 20
STREAMS = 16  # files at once: one stream does not fill a parallel file system, hundreds hurt its other users
TELL_EVERY_S = 1
COMPLETE = ".complete"
PART = ".part"


def main(argv):
    """Exit status; the last line of stderr says what is wrong and what to do."""
    folder, source, manifest = (Path(word) for word in argv)
    try:
        stage(folder, source, manifest)
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 1
    return 0


class Refused(Exception):
    """The folder cannot be made what the manifest says."""


class Progress:
    """Bytes looked at so far, by all streams together."""

    def __init__(self, total):
        self.total, self.done, self.told = total, 0, 0.0
        self.lock = threading.Lock()

    def add(self, count):
        with self.lock:
            self.done += count
            if time.monotonic() - self.told >= TELL_EVERY_S:
                self.tell("bytes staged")

    def tell(self, text):
        self.told = time.monotonic()
        place = os.environ.get("DSV32_PROGRESS")
        if place:
            line = {"text": text, "done": self.done, "total": self.total}
            Path(place + ".new").write_text(json.dumps(line))
            os.replace(place + ".new", place)


def stage(folder, source, manifest):
    """Make `folder` hold exactly the files that `manifest` names."""
    text, files = read(manifest)
    folder.mkdir(parents=True, exist_ok=True)
    # Nobody may take the folder for complete while it changes.
    remove(folder / COMPLETE)
    sweep(folder, files)
    need_room(folder, files)
    progress = Progress(sum(entry["size"] for entry in files.values()))
    with ThreadPoolExecutor(STREAMS) as pool:
        streams = [pool.submit(bring, folder, source, n, e, progress) for n, e in sorted(files.items())]
        wrong = sorted(w for w in (s.result() for s in as_completed(streams)) if w)
    if wrong:
        raise Refused("\n".join(wrong))
    write_synced(folder / COMPLETE, hashlib.sha256(text).hexdigest() + "\n")
    progress.tell("weights complete")


def read(manifest):
    """The manifest's bytes and its files."""
    try:
        text = manifest.read_bytes()
    except OSError as error:
        raise Refused(f"{manifest}: {error.strerror}: run `dsv32-launch weights manifest`") from None
    files = json.loads(text)["files"]
    outside = [name for name in files if name.startswith(("/", ".")) or ".." in Path(name).parts]
    if outside:
        raise Refused(f"{manifest}: {outside[0]!r} is no name for a file inside the model's folder")
    return text, files


def sweep(folder, files):
    """Remove what the manifest does not name: an engine loads every shard that it finds."""
    for path in sorted(folder.rglob("*")):
        if not path.is_dir() and path.relative_to(folder).as_posix() not in files:
            print(f"removed {path}, which the manifest does not name")
            path.unlink()


def need_room(folder, files):
    """Refuse before the first byte, not after the last that fits."""
    missing = sum(entry["size"] - max(size(folder / name), 0) for name, entry in files.items())
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    if missing > free:
        raise Refused(f"{folder} needs {missing >> 20} MiB more, {free >> 20} MiB are free: make room there")


def size(path):
    """Bytes of a file; -1 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return -1


def bring(folder, source, name, entry, progress):
    """Make one file right; what is wrong with it, else nothing."""
    target = folder / name
    if size(target) == entry["size"]:
        if copy(target, None, progress.add) == entry["sha256"]:
            return ""
        progress.total += entry["size"]
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name("." + target.name + PART)
    try:
        found = copy(source / name, part, progress.add)
    except OSError as error:
        return f"{error.filename or part}: {error.strerror}"
    if found != entry["sha256"]:
        remove(part)
        return (
            f"{source / name} has sha256 {found[:12]}, the manifest says {entry['sha256'][:12]}: "
            "restore that file, or write the manifest anew"
        )
    os.replace(part, target)
    sync(target.parent)
    return ""


def copy(source, target, count):
    """sha256 of `source`, copied to `target` unless that is None; `count` gets the bytes of each block."""
    digest = hashlib.sha256()
    with open(source, "rb", buffering=0) as reader, open(target or os.devnull, "wb", buffering=0) as writer:
        block = bytearray(BLOCK)
        view = memoryview(block)
        while True:
            length = reader.readinto(block)
            if not length:
                break
            digest.update(view[:length])
            if target:
                write_all(writer, view[:length])
            count(length)
        if target:
            os.fsync(writer.fileno())
        # The page cache is for the engines: what was only copied is dropped from it again.
        os.posix_fadvise(reader.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return digest.hexdigest()


def write_all(writer, view):
    while view:
        view = view[writer.write(view) :]


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
