"""stack: all that hosts install, fetched once into a folder of the shared file system; knows no host."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from launcher.flows import mirror, wheelhouse
from launcher.flows.digests import sha256_of
from launcher.load.choice import Choice
from launcher.load.collect import Collector
from launcher.load.data import Data
from launcher.load.profile import read_stack
from launcher.model.problem import InputError, LauncherError, Problem
from launcher.model.profile import Stack
from launcher.model.run import Event, Listener

FORMAT = 1
LOCK = "requirements.lock"
RECORD = "stack.json"


@dataclass(frozen=True, slots=True)
class Built:
    """A stack in its folder."""

    folder: Path
    wheels: int
    packages: int
    size_bytes: int


def read(name: str, data: Data) -> Stack:
    """configs/stacks/<name>.yaml, without any inventory. InputError with all that is wrong in it."""
    problems = Collector()
    stack, _ = read_stack(Choice(name, "stack"), data, problems)
    problems.raise_any()
    assert stack is not None
    return stack


def folder_of(stack: Stack, shared: Path) -> Path:
    """Where roles look for a stack, below `paths.shared`."""
    return shared / "stacks" / stack.name


def build(stack: Stack, to: Path, listener: Listener, *, data: Data, status: Path | None = None) -> Built:
    """Fetch the stack's wheels and packages into `to`/stacks/<name>; what is there and whole is kept.

    `to` is `paths.shared` as this machine sees it; `status` a dpkg status file of the hosts (see
    mirror.fill). InputError for a stack that names no lock; LauncherError where pip or apt refuse, or
    another build of it runs.
    """
    lock = data.find(f"configs/stacks/{stack.lock}") if stack.lock else None
    if lock is None:
        raise InputError(_no_lock(stack))
    target = wheelhouse.Target(stack.python, stack.variables.get("glibc", ""))
    if not (target.python and target.glibc):
        what = f"stack {stack.name} does not say which Python and C library the hosts have"
        do = 'add `python: "3.12"` and `variables: {glibc: "2.39"}`'
        raise InputError(Problem(what, where=stack.source, do=do))
    pins = wheelhouse.read_lock(lock)
    folder = folder_of(stack, to)

    def tell(what: str, done: int, total: int) -> None:
        data = {"done": done, "total": total}
        listener(Event("job", text=f"{what} {done}/{total}", subject=f"stack {stack.name}", data=data))

    with _alone(folder):
        wheels = wheelhouse.fill(folder / "wheels", pins, target, tell=tell)
        packages = mirror.fill(folder / "debs", stack.packages, status=status, tell=tell)
        _write(folder / LOCK, lock.read_bytes())
        digests = {
            LOCK: sha256_of(lock),
            **{f"wheels/{name}": digest for name, digest in wheels.items()},
            **{f"debs/{name}": digest for name, digest in packages.items()},
        }
        size_bytes = _record(stack, folder, digests)
    return Built(folder, len(wheels), sum(name.endswith(".deb") for name in packages), size_bytes)


def verify(stack: Stack, at: Path) -> tuple[Problem, ...]:
    """What is wrong with the stack below `at`, every byte of it read; () if nothing is."""
    folder = folder_of(stack, at)
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        files = {name: dict(entry) for name, entry in record["files"].items()}
        complete = LOCK in files and all("sha256" in entry for entry in files.values())
    except OSError:
        what = f"stack {stack.name} is not built, or its first build did not end"
        return (Problem(what, where=str(folder), do=_again(stack, at)),)
    except (ValueError, TypeError, KeyError, AttributeError):
        complete = False
    if not complete:
        what = f"the record of stack {stack.name} is damaged"
        return (Problem(what, where=str(folder / RECORD), do=_again(stack, at)),)
    return tuple(_wrong(files, stack, folder, again=_again(stack, at)))


def _record(stack: Stack, folder: Path, digests: Mapping[str, str]) -> int:
    """Write down what was built, last of all; bytes of all of it."""
    sizes = {name: (folder / name).stat().st_size for name in digests}
    files = {name: {"size": sizes[name], "sha256": digest} for name, digest in digests.items()}
    record = {"format": FORMAT, "stack": stack.name, "files": files}
    _write(folder / RECORD, (json.dumps(record, indent=1) + "\n").encode())
    return sum(sizes.values())


def _again(stack: Stack, to: Path) -> str:
    return f"dsv32-launch stack build {stack.name} --to {to}"


def _wrong(
    files: Mapping[str, Mapping[str, str]], stack: Stack, folder: Path, *, again: str
) -> Iterator[Problem]:
    if files[LOCK]["sha256"] != stack.lock_digest:
        what = f"built was lock {files[LOCK]['sha256'][:12]}, the stack's is {stack.lock_digest[:12]}"
        yield Problem(what, where=str(folder / LOCK), do=again)
    for name, entry in files.items():
        path = folder / name
        if not path.exists():
            yield Problem(f"{path.name} is missing", where=str(path), do=again)
            continue
        try:
            found = sha256_of(path)
        except OSError as error:
            reason = (error.strerror or "input/output error").lower()
            yield Problem(f"{path.name} cannot be read: {reason}", where=str(path), do=again)
            continue
        if found != entry["sha256"]:
            what = f"{path.name} has sha256 {found[:12]}, built was {entry['sha256'][:12]}"
            yield Problem(what, where=str(path), do=again)


def _no_lock(stack: Stack) -> Problem:
    return Problem(
        f"stack {stack.name} names no lock: there is nothing to fetch",
        where=stack.source,
        why="hosts install hashed wheels alone, and its versions have not been locked yet",
        do="make it with `uv pip compile --generate-hashes`, put it into configs/stacks/, name it as `lock`",
    )


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the stack's folder: two builds would remove what the other has just fetched."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = (folder / ".lock").open("w")
    except OSError as error:
        reason = (error.strerror or "not writable").lower()
        do = "give --to a folder that you may write to"
        raise InputError(Problem(f"cannot build there: {reason}", where=str(folder), do=do)) from None
    with held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            problem = Problem("another build of this stack runs", where=str(folder), do="wait for its end")
            raise LauncherError(problem) from None
        yield


def _write(path: Path, content: bytes) -> None:
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(content)
    os.replace(new, path)
