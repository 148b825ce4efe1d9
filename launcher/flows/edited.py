"""An inventory with a few values changed: its text, what that wishes for, and how it is written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from launcher.load import load
from launcher.load.edit import Edit, Lines, changed_lines, edited
from launcher.model.problem import InputError, Problem
from launcher.model.wish import Wish


@dataclass(frozen=True, slots=True)
class Edited:
    """An inventory that is not written yet."""

    path: Path
    before: str
    text: str
    wish: Wish
    """What the new text says."""

    @property
    def lines(self) -> tuple[Lines, ...]:
        """The lines that change."""
        return changed_lines(self.before, self.text, str(self.path))

    def refuse_unwritable(self) -> None:
        """InputError where the file could not be written: better before hosts have changed than after."""
        if self.lines and not os.access(self.path.resolve().parent, os.W_OK):
            raise InputError(self._unwritten("its folder is not writable"))

    def write(self) -> None:
        """The new text over the file, at once and as a whole; nothing where nothing changes. InputError where
        somebody else changed the file meanwhile, or it cannot be written."""
        if self.text == self.before:
            return
        if _read(self.path) != self.before:
            raise InputError(self._unwritten("somebody changed it while this command worked with it"))
        real = self.path.resolve()
        new = real.with_name(f".{real.name}.new")
        try:
            new.write_bytes(self.text.encode())
            shutil.copymode(real, new)
            with suppress(PermissionError):  # who may not give files away leaves one of its own
                os.chown(new, real.stat().st_uid, real.stat().st_gid)
            os.replace(new, real)
        except OSError as error:
            raise InputError(self._unwritten((error.strerror or "not writable").lower())) from None

    def _unwritten(self, why: str) -> Problem:
        told = "; ".join(f"{' / '.join(change.after)} ({change.place})" for change in self.lines)
        return Problem("the inventory is not written", str(self.path), why, do=f"write by hand {told}")


def edited_inventory(
    path: Path,
    edits: Sequence[Edit],
    *,
    data_dir: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Edited:
    """The inventory after these edits, loaded as if they were written. InputError as of `load`, and where its
    form does not let it be edited."""
    before = _read(path)
    text = edited(before, str(path), edits)
    return Edited(path, before, text, load(path, data_dir=data_dir, environment=environment, text=text))


def _read(path: Path) -> str:
    """Line ends and all, as they are; `load` has read it before, and says what is wrong with it."""
    return path.read_bytes().decode()
