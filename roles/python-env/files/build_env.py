#!/usr/bin/env python3
"""Build a Python environment from a lock and a folder of wheels, on a host without any network.

    build_env.py PATH PYTHON LOCK WHEELS DIGEST

Runs as a job; standard library only, Python 3.8 or newer. The environment is made beside PATH and renamed,
with PATH/.complete (it holds DIGEST) written before: an environment is there as a whole, or not at all.
Every wheel must have a hash that the lock names, the installer's own wheel too.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

COUNT_EVERY_S = 1


def main(argv):
    """Exit status; the last line of stderr says what is wrong and what to do."""
    path, python, lock, wheels, digest = argv
    try:
        build(Path(path), python, lock=Path(lock), wheels=Path(wheels), digest=digest)
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 1
    return 0


class Refused(Exception):
    """The environment cannot be built from what is there."""


def build(path, python, *, lock, wheels, digest):
    """Make `path` an environment that holds exactly what `lock` names."""
    text = read(lock)
    found = hashlib.sha256(text).hexdigest()
    if found != digest:
        raise Refused(f"{lock} is lock {found[:12]}, wanted is {digest[:12]}: run `dsv32-launch stack build`")
    partial, cache = path.with_name(path.name + ".partial"), path.with_name(path.name + ".cache")
    for leftover in (partial, cache):
        shutil.rmtree(leftover, ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    pins = len(re.findall(rb"(?m)^[A-Za-z0-9][^#\s]*==", text))
    uv = installer(wheels, text, cache)
    # Scripts of a relocatable environment find their interpreter beside them, so it may be renamed.
    run([uv, "venv", "--relocatable", "--python", python, partial], cache)
    install = [uv, "pip", "install", "--python", partial / "bin/python", "--no-index", "--find-links", wheels]
    install += ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--compile-bytecode", "-r", lock]
    run(install, cache, progress=lambda: say("packages installed", installed(partial), pins))
    publish(partial, path, digest)
    shutil.rmtree(cache, ignore_errors=True)
    say("environment complete", pins, pins)


def read(lock):
    try:
        return lock.read_bytes()
    except OSError as error:
        raise Refused(f"{lock}: {error.strerror}: is it mounted, and the stack built?") from None


def installer(wheels, lock_text, cache):
    """The uv program, out of its wheel, put beside the cache."""
    for wheel in sorted(wheels.glob("uv-*.whl")):
        if hashlib.sha256(wheel.read_bytes()).hexdigest().encode() not in lock_text:
            continue
        cache.mkdir(parents=True)
        with zipfile.ZipFile(wheel) as archive:
            member = next(n for n in archive.namelist() if n.endswith("/scripts/uv"))
            (cache / "uv").write_bytes(archive.read(member))
        (cache / "uv").chmod(0o755)
        return cache / "uv"
    raise Refused(f"{wheels} holds no uv wheel that the lock names: run `dsv32-launch stack build`")


def run(words, cache, *, progress=lambda: None):
    """Run the installer to its end; `progress` is called now and then."""
    # The cache lies on the environment's own file system: files are linked out of it, not copied.
    environment = {**os.environ, "UV_CACHE_DIR": str(cache), "UV_OFFLINE": "1", "UV_NO_CONFIG": "1"}
    output = cache / "output"
    with output.open("wb") as log:
        program = subprocess.Popen([str(w) for w in words], stdout=log, stderr=log, env=environment)
        while program.poll() is None:
            progress()
            time.sleep(COUNT_EVERY_S)
    sys.stderr.write(output.read_text(errors="replace"))
    if program.returncode:
        raise Refused(f"`uv {words[1]}` ended with {program.returncode}: see the lines above")


def installed(environment):
    return sum(1 for _ in environment.glob("lib/python3*/site-packages/*.dist-info"))


def publish(partial, path, digest):
    """Give the finished environment its name; what was there under it was not complete."""
    (partial / ".complete").write_text(digest + "\n")
    os.sync()
    shutil.rmtree(path, ignore_errors=True)
    os.rename(partial, path)


def say(text, done=0, total=0, **more):
    """Tell whoever follows the job how far it is."""
    place = os.environ.get("DSV32_PROGRESS")
    if place:
        with open(place + ".part", "w", encoding="utf-8") as file:
            json.dump({"text": text, "done": done, "total": total, **more}, file)
        os.replace(place + ".part", place)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
