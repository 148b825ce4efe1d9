"""Reads files of a folder past the page cache, eight at once, for some seconds; prints how fast.

What the file system lets nobody read directly is dropped from the cache first. Standard library, Python 3.8.
"""

import mmap
import os
import sys
import threading
import time

STREAMS = 8
SECONDS = 10.0
PIECE = 16 << 20
LEAST = 1 << 20
"""Smaller files are not weights."""


def main(folder):
    """Exit 1 where there is nothing to read."""
    names = sorted(os.path.join(folder, name) for name in os.listdir(folder)) if os.path.isdir(folder) else []
    paths = [path for path in names if os.path.isfile(path) and os.path.getsize(path) >= LEAST]
    if not paths:
        print(f"{folder}: no file to read")
        return 1
    begun, until = time.monotonic(), time.monotonic() + SECONDS
    done, buffered = [0] * STREAMS, []
    threads = [
        threading.Thread(target=read_some, args=(paths, place, until, done, buffered))
        for place in range(STREAMS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    how, total = "buffered" if buffered else "direct", sum(done)
    rate = total / (time.monotonic() - begun) / 1e9
    print(f"read {total} bytes of {len(paths)} files, {how}: {rate:.2f} GB/s")
    return 0


def read_some(paths, place, until, done, buffered):
    """One stream: every eighth piece of all files, from file to file; at most all of them once."""
    buffer = mmap.mmap(-1, PIECE)  # at a page's begin, as direct reads need it
    number = 0
    for path in paths:
        file, direct = opened(path)
        if not direct:
            buffered.append(path)
        try:
            for at in range(0, os.path.getsize(path), PIECE):
                if number % STREAMS == place:
                    if time.monotonic() > until:
                        return
                    done[place] += os.preadv(file, [buffer], at)
                number += 1
        finally:
            os.close(file)


def opened(path):
    """A file, and whether it is read directly."""
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECT), True
    except OSError:  # tmpfs, some overlays
        file = os.open(path, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        return file, False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
