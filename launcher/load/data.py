"""Where roles/ and configs/ are, and what was read of them; knows nothing of their content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from launcher.load.document import Document, parse
from launcher.load.schema import near
from launcher.model.problem import InputError, Problem

PACKAGE = Path(__file__).resolve().parents[1]

LARGEST = 64 << 20
"""Bytes; what we read is text that people write."""


def shipped() -> Path:
    """The folder with our own roles/ and configs/: in an installed package, or beside it in a checkout."""
    inside = PACKAGE / "_data"
    return inside if inside.is_dir() else PACKAGE.parent


def roots_of(data_dir: Path | None) -> tuple[Path, ...]:
    """The shipped data, under a user's own where there is one. InputError if that is no folder."""
    if data_dir is None:
        return (shipped(),)
    if not data_dir.is_dir():
        what = f"data folder `{data_dir}` is not a folder"
        raise InputError(Problem(what, do="give --data-dir a folder that holds roles/ or configs/"))
    return (data_dir, shipped())


class Data:
    """The files of one load, and a digest of all that was read."""

    def __init__(self, roots: Sequence[Path]) -> None:
        """`roots`: folders with roles/ and configs/; a file of an earlier one hides that of a later one."""
        self._roots = tuple(roots)
        self._read: dict[Path, bytes] = {}
        self._given: dict[Path, bytes] = {}

    def give(self, path: Path, content: bytes) -> None:
        """From now on a file holds this, whatever is on disk."""
        self._given[path] = content

    def find(self, relative: str) -> Path | None:
        """The file or folder of that name that counts."""
        return next((root / relative for root in self._roots if (root / relative).exists()), None)

    def names(self, folder: str, *, holding: str) -> list[str]:
        """What a folder offers: files with a suffix (`.yaml`), or folders that hold a file (`role.yaml`)."""
        found: set[str] = set()
        for root in self._roots:
            if holding.startswith("."):
                found |= {path.stem for path in (root / folder).glob(f"*{holding}")}
            else:
                found |= {path.parent.name for path in (root / folder).glob(f"*/{holding}")}
        return sorted(found)

    def shown(self, path: Path) -> str:
        """A path as messages name it: shipped files by their place in the data, others as given."""
        root = self._roots[-1]
        ours = any(path.is_relative_to(root / folder) for folder in ("configs", "roles"))
        return path.relative_to(root).as_posix() if ours else str(path)

    def content(self, path: Path) -> bytes:
        """A file's bytes; InputError says why it cannot be read."""
        try:
            content = self._given[path] if path in self._given else _some(path)
        except OSError as error:
            raise InputError(_unreadable(path, self.shown(path), error)) from None
        if len(content) > LARGEST:
            what = f"the file is larger than {LARGEST >> 20} MiB"
            raise InputError(Problem(what, where=self.shown(path), do="name the file that was meant"))
        self._read[path] = content
        return content

    def text(self, path: Path) -> str:
        """A file's text; InputError if it is not UTF-8."""
        content = self.content(path)
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            what = f"byte 0x{content[error.start]:02x} is not UTF-8"
            where = f"{self.shown(path)}:{line}"
            raise InputError(Problem(what, where=where, do="save the file as UTF-8")) from None

    def document(self, path: Path) -> Document:
        """A YAML file; InputError unless it is one and holds keys and values. Nobody may change these: files
        that hold the same give the same document."""
        document = _parsed(self.text(path), self.shown(path))
        if not isinstance(document.values, dict):
            what = (
                f"the file holds {'a list' if isinstance(document.values, list) else 'text'}, expected keys"
            )
            raise InputError(Problem(what, where=document.place(()), do="write `key: value` lines"))
        return document

    @property
    def digest(self) -> str:
        """sha256 over names and content of every file read so far."""
        read = sorted((self.shown(path), content) for path, content in self._read.items())
        lines = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in read)
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def files(self) -> Mapping[str, bytes]:
        """Place in the data → content of every file of roles/ and configs/ read so far."""
        found = ((self._place(path), content) for path, content in self._read.items())
        return {place: content for place, content in found if place}

    def _place(self, path: Path) -> str:
        """`configs/…` or `roles/…`, of whichever root; empty for a file of neither."""
        for root in self._roots:
            if any(path.is_relative_to(root / folder) for folder in ("configs", "roles")):
                return path.relative_to(root).as_posix()
        return ""


def unknown(kind: str, name: str, *, where: str, known: Iterable[str]) -> Problem:
    """A name that no file of configs/ or roles/ has."""
    return Problem(f"unknown {kind} `{name}`", where=where, do=near(name, known))


@lru_cache(maxsize=512)
def _parsed(text: str, shown: str) -> Document:
    # commands that resolve many inventories read the same files for each of them
    return parse(text, shown)


def _some(path: Path) -> bytes:
    with path.open("rb") as file:  # which may be a pipe, or have no end
        return file.read(LARGEST + 1)


def _unreadable(path: Path, shown: str, error: OSError) -> Problem:
    if isinstance(error, FileNotFoundError):
        beside = [p.name for p in path.parent.glob(f"*{path.suffix}")] if path.parent.is_dir() else []
        return Problem("no such file", where=shown, do=near(path.name, beside))
    if isinstance(error, IsADirectoryError):
        return Problem("this is a folder, expected a file", where=shown, do="name a file in it")
    reason = (error.strerror or "unreadable").lower()
    return Problem(f"cannot be read: {reason}", where=shown, do="check its owner and mode: ls -l")
