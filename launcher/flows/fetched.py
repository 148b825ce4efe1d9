"""fetched: a folder that hosts install from, filled once, and its record; knows no apt and no pip."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from launcher.flows.digests import sha256_of
from launcher.model.problem import InputError, LauncherError, Problem
from launcher.record.whole import write_whole

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Folder:
    """A stack's, or a platform's."""

    path: Path
    kind: str
    """`stack` or `platform`."""
    name: str
    parts: tuple[str, ...]
    """Folders in it whose files the record names."""
    again: str
    """The command that fills it."""

    @property
    def record(self) -> Path:
        """Written last."""
        return self.path / f"{self.kind}.json"


@contextmanager
def alone(folder: Folder) -> Iterator[None]:
    """Hold the folder: two builds would remove what the other has just fetched."""
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        held = (folder.path / ".lock").open("w")
    except OSError as error:
        reason = (error.strerror or "not writable").lower()
        do = "give --to a folder that you may write to"
        raise InputError(Problem(f"cannot build there: {reason}", where=str(folder.path), do=do)) from None
    with held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            what = f"another build of this {folder.kind} runs"
            raise LauncherError(Problem(what, where=str(folder.path), do="wait for its end")) from None
        yield


def record(folder: Folder, digests: Mapping[str, str]) -> int:
    """Write down what is in it (path in it → sha256), and take away what is not; bytes of all of it."""
    sizes = {name: (folder.path / name).stat().st_size for name in digests}
    files = {name: {"size": sizes[name], "sha256": digest} for name, digest in digests.items()}
    told = {"format": FORMAT, folder.kind: folder.name, "files": files}
    write_whole(folder.record, json.dumps(told, indent=1) + "\n")
    for path in strays(folder, digests):
        path.unlink()
    return sum(sizes.values())


def recorded(folder: Folder, *, must_have: str) -> dict[str, str]:
    """Path in it → sha256, as its record says. LauncherError where it has none, or not of `must_have`."""
    try:
        told = json.loads(folder.record.read_text(encoding="utf-8"))
        files = {name: str(entry["sha256"]) for name, entry in told["files"].items()}
        if must_have in files:
            return files
    except OSError:
        what = f"{folder.kind} {folder.name} is not built, or its first build did not end"
        raise LauncherError(Problem(what, where=str(folder.path), do=folder.again)) from None
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    what = f"the record of {folder.kind} {folder.name} is damaged"
    raise LauncherError(Problem(what, where=str(folder.record), do=folder.again))


def wrong(folder: Folder, files: Mapping[str, str]) -> Iterator[Problem]:
    """Files that are missing, changed, unreadable, or too many; every byte is read."""
    for name, digest in files.items():
        path = folder.path / name
        if not path.exists():
            yield Problem(f"{path.name} is missing", where=str(path), do=folder.again)
            continue
        try:
            found = sha256_of(path)
        except OSError as error:
            reason = (error.strerror or "input/output error").lower()
            yield Problem(f"{path.name} cannot be read: {reason}", where=str(path), do=folder.again)
            continue
        if found != digest:
            what = f"{path.name} has sha256 {found[:12]}, built was {digest[:12]}"
            yield Problem(what, where=str(path), do=folder.again)
    for path in strays(folder, files):
        yield Problem(f"{path.name} is not of this {folder.kind}", where=str(path), do=folder.again)


def strays(folder: Folder, files: Iterable[str]) -> tuple[Path, ...]:
    """Files of its parts that are not among `files`."""
    known = set(files)
    found = (path for part in folder.parts for path in sorted((folder.path / part).glob("*")))
    return tuple(path for path in found if path.relative_to(folder.path).as_posix() not in known)
