"""The wheelhouse: a folder that holds the wheels of a lock; knows pip, no stack."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.flows.digests import sha256_of
from launcher.model.problem import InputError, LauncherError, Problem

AT_ONCE = 16
"""Wheels fetched by one call of pip, which keeps nothing of a call that was interrupted."""
PIP_WITHIN_S = 1800
OLDEST_GLIBC = 5
"""manylinux1 is glibc 2.5: no wheel for Linux is built for an older one."""
PIN = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>\S+)(?P<hashes>(\s+--hash=sha256:[0-9a-f]{64})+)$"
)


@dataclass(frozen=True, slots=True)
class Pin:
    """One package of a lock, and the sha256 of each file that may be it."""

    name: str
    version: str
    hashes: tuple[str, ...]
    where: str

    def requirement(self) -> str:
        """Its line of a requirements file."""
        return f"{self.name}=={self.version} " + " ".join(f"--hash=sha256:{h}" for h in self.hashes)


@dataclass(frozen=True, slots=True)
class Target:
    """The Python that wheels are for; the machine is Linux on x86-64."""

    python: str
    """`3.11`."""
    glibc: str
    """`2.36`: the hosts' C library."""

    def options(self) -> Iterator[str]:
        """What tells pip to take wheels for it, whatever it runs on itself."""
        tag = self.python.replace(".", "")
        yield from ("--python-version", self.python, "--implementation", "cp")
        for abi in (f"cp{tag}", "abi3", "none"):
            yield from ("--abi", abi)
        for platform in self.platforms():
            yield from ("--platform", platform)

    @property
    def newest(self) -> str:
        """`manylinux_2_36`."""
        return f"manylinux_{self.glibc.replace('.', '_')}"

    def platforms(self) -> Iterator[str]:
        """The platform tags of wheels for it, the best first."""
        newest = int(self.glibc.split(".")[1])
        yield from (f"manylinux_2_{minor}_x86_64" for minor in range(newest, OLDEST_GLIBC - 1, -1))
        yield from ("manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64")


def read_lock(path: Path) -> tuple[Pin, ...]:
    """The pins of a lock. InputError names each line that is not one version with its hashes."""
    pins, problems = [], []
    for number, line in _logical_lines(path.read_text(encoding="utf-8")):
        where = f"{path}:{number}"
        found = PIN.match(line)
        if found is None:
            what = f"`{line[:60]}` is no pinned version with its sha256"
            do = "write `name==version --hash=sha256:...`, as `uv pip compile --generate-hashes` does"
            problems.append(Problem(what, where=where, do=do))
            continue
        hashes = tuple(re.findall("[0-9a-f]{64}", found["hashes"]))
        pins.append(Pin(found["name"], found["version"], hashes, where))
    if problems:
        raise InputError(*problems)
    return tuple(pins)


def fill(
    folder: Path, pins: Iterable[Pin], target: Target, *, tell: Callable[[str, int, int], None]
) -> Mapping[str, str]:
    """Make `folder` hold one wheel of each pin; file name → sha256. What else is there stays.

    Wheels that are there and whole are not fetched again. LauncherError where pip finds none.
    """
    pins = tuple(pins)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {digest for pin in pins for digest in pin.hashes}
    found = {path.name: sha256_of(path) for path in sorted(folder.glob("*.whl"))}
    present = {name: digest for name, digest in found.items() if digest in wanted}
    missing = [pin for pin in pins if not set(pin.hashes) & set(present.values())]
    tell("wheels", len(pins) - len(missing), len(pins))
    if not missing:
        return present
    work = folder.parent / ".wheels"
    pip = _pip(work)
    for start in range(0, len(missing), AT_ONCE):
        for path in _fetch(missing[start : start + AT_ONCE], target, pip=pip, work=work, folder=folder):
            present[path.name] = sha256_of(path)
            os.replace(path, folder / path.name)
        left = max(0, len(missing) - start - AT_ONCE)
        tell("wheels", len(pins) - left, len(pins))
    shutil.rmtree(work)
    return dict(sorted(present.items()))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined, and the number of the first."""
    gathered, first = "", 0
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.split(" #")[0].strip()
        if not gathered:
            if not line or line.startswith("#"):
                continue
            first = number
        gathered = f"{gathered} {line.removesuffix(chr(92)).strip()}".strip()
        if not line.endswith(chr(92)):
            yield first, gathered
            gathered = ""


def _pip(work: Path) -> list[str]:
    """Words that run pip: this Python's, or one in an environment of its own where this has none."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    try:
        venv.create(work / "pip", with_pip=True)
    except subprocess.CalledProcessError:
        do = "install Debian's python3-venv or python3-pip"
        raise LauncherError(Problem("this Python has neither pip nor a way to install it", do=do)) from None
    return [str(work / "pip/bin/python"), "-m", "pip"]


def _fetch(pins: list[Pin], target: Target, *, pip: list[str], work: Path, folder: Path) -> list[Path]:
    """Download these pins' wheels; pip checks the hashes, and its own configuration says where from."""
    requirements, found = work / "requirements.txt", work / "found"
    requirements.write_text("".join(f"{pin.requirement()}\n" for pin in pins), encoding="utf-8")
    shutil.rmtree(found, ignore_errors=True)
    words = [*pip, "download", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    words += ["--disable-pip-version-check", *target.options(), "--dest", str(found)]
    try:
        done = subprocess.run(
            [*words, "-r", str(requirements)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PIP_WITHIN_S,
        )
    except subprocess.TimeoutExpired:
        what = f"pip did not end within {PIP_WITHIN_S} s"
        raise LauncherError(Problem(what, do="run it again: what it has fetched is kept")) from None
    if done.returncode:
        raise LauncherError(_refusal(pins, done.stderr, folder))
    return sorted(found.iterdir())


def _refusal(pins: list[Pin], said: str, folder: Path) -> Problem:
    lines = [line for line in said.splitlines() if line.startswith("ERROR")]
    lost = re.search(r"No matching distribution found for (\S+)==", said)
    pin = next((p for p in pins if lost and p.name == lost[1]), None)
    if pin is None:
        names = ", ".join(p.name for p in pins[:3])
        what = f"pip could not fetch {len(pins)} wheels ({names}, ...)"
        return Problem(what, why="; ".join(lines[:3]) or said[-600:], do="run it again, or read why above")
    what = f"pip finds no {pin.name} {pin.version} for these hosts"
    if "+" not in pin.version:
        return Problem(what, where=pin.where, do="see where pip looks: pip config list")
    return Problem(
        what,
        where=pin.where,
        why="a version with `+` is on no public index; the CPU build of torch is on PyTorch's own",
        do=f"put its wheel into {folder}, or its folder: pip config set global.find-links FOLDER",
    )
