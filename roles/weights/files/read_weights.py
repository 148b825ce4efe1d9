#!/usr/bin/env python3
"""Compare the files of a manifest, where they are, by size; then read them all into the page cache.

    read_weights.py FOLDER MANIFEST RECORD
    read_weights.py --verify FOLDER MANIFEST

Runs as a job; standard library only, Python 3.8 or newer. Nothing is written below FOLDER, which all hosts
share. RECORD, written last, holds the sha256 of the manifest. Where memory cannot hold the files nothing is
read: what is read last would push out what was read first, and engines would read all of it again. --verify
reads every byte and says which files are wrong.
"""

import json
import mmap
import os
import sys
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True  # nothing is left beside programs that a plan knows
from stage_weights import (  # noqa: E402
    ALONE,
    TELL_EVERY_S,
    Progress,
    Refused,
    Repeated,
    Store,
    read,
    size,
    verified,
    write_synced,
)
from weights_peers import Pace  # noqa: E402

PIECE = 1 << 20
REMEDY = "bring that to the shared file system again, then run `dsv32-launch up`"


def main(argv):
    """Exit status; the last line of stderr says what is wrong and what to do."""
    verifies = argv[0] == "--verify"
    folder, manifest, *record = (Path(word) for word in argv[verifies:])
    try:
        verify(folder, manifest) if verifies else read_all(folder, manifest, *record)
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 1
    except OSError as error:
        where = error.filename or folder
        print(f"{where}: {error.strerror}: have the file system looked at", file=sys.stderr)
        return 1
    return 0


def read_all(folder, manifest, record):
    """Have all files of their size, and in the page cache if there is room."""
    wanted = read(manifest)
    files = wanted.files
    odd = [n for n in sorted(files) if size(folder / n) != files[n]["size"]]
    if odd:
        lines = [f"{folder / n}: {max(size(folder / n), 0)} of {files[n]['size']} bytes" for n in odd]
        raise Refused("\n".join([*lines, f"{', '.join(odd)}: of another size: {REMEDY}"]))
    total, room = sum(e["size"] for e in files.values()), available()
    progress = Progress(total)
    if total > room:
        text = f"not read ahead: {total >> 20} MiB of weights, {room >> 20} MiB of memory are available"
        print(text)
        progress.tell(text, total)
    else:
        pull(folder, wanted.blocks, progress)
    record.parent.mkdir(parents=True, exist_ok=True)
    write_synced(record, wanted.revision + "\n")


def available():
    """Bytes that the kernel can give without swapping; what the page cache has of others counts."""
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) << 10


def pull(folder, blocks, progress):
    """Have every block in the page cache, several at once, not faster than this host's share of the limit."""
    told = {**ALONE, **json.loads(os.environ.get("DSV32_FLEET", "{}"))}
    pace = Pace((told["read_mib_s"] << 20) / max(len(told["peers"]), 1))
    done, lock = [0], threading.Lock()
    handles = {name: os.open(folder / name, os.O_RDONLY) for name in {b.name for b in blocks}}
    mapped = {n: memoryview(mmap.mmap(h, 0, access=mmap.ACCESS_READ)) for n, h in handles.items()}

    def bring(block):
        pace.wait(block.size)
        buffer, end, at = memoryview(bytearray(PIECE)), block.offset + block.size, block.offset
        while at < end:
            count = os.preadv(handles[block.name], [buffer[: end - at]], at)
            if not count:
                raise Refused(f"{folder / block.name}: cut short while it was read: {REMEDY}")
            at += count
        # Engines map shards. GPFS keeps what was read in its pagepool alone, and what a mapping touched in
        # the page cache, too; this touches it, and lets other threads go on meanwhile.
        zlib.adler32(mapped[block.name][block.offset : end])
        with lock:
            done[0] += block.size

    teller = Repeated(lambda: progress.tell("bytes read ahead", done[0]), TELL_EVERY_S)
    try:
        with ThreadPoolExecutor(told["streams"]) as pool:
            for _ in pool.map(bring, blocks):
                pass
    finally:
        teller.stop()


def verify(folder, manifest):
    """Read all; refused with each file that is not what the manifest says."""
    wrong = verified(Store(folder, read(manifest)))
    if wrong:
        lines = (f"{folder / n}: {count} blocks are wrong" for n, count in sorted(wrong.items()))
        raise Refused("\n".join([*lines, f"{', '.join(sorted(wrong))}: wrong bytes: {REMEDY}"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
