"""Mounts of this machine; knows nothing of what is in them."""

from __future__ import annotations

from pathlib import Path

from launcher.model.problem import LauncherError, Problem
from launcher.sandbox import programs

TABLE = Path("/proc/self/mountinfo")


def under(folder: Path) -> tuple[Path, ...]:
    """Mount points at and below a folder, in the order in which they were mounted."""
    points = (Path(_unescape(line.split()[4])) for line in TABLE.read_text().splitlines())
    return tuple(p for p in points if p == folder or folder in p.parents)


def is_mount(folder: Path) -> bool:
    """Whether something is mounted exactly there."""
    return folder in under(folder)


def is_layer(folder: Path) -> bool:
    """Whether an overlay has this folder among its lower layers."""
    rows = (line.split(" - ", 1)[1].split() for line in TABLE.read_text().splitlines())
    options = (row[2] for row in rows if row[0] == "overlay")
    return any(str(folder) in _lower(text) for text in options)


def tmpfs(folder: Path, *, size: str, label: str) -> None:
    """Mount a tmpfs of at most `size` (`512m`, `2g`), unless something is mounted there."""
    if not is_mount(folder):
        programs.run("mount", "-t", "tmpfs", "-o", f"size={size},mode=755", label, str(folder))


def overlay(folder: Path, *, lower: tuple[Path, ...], upper: Path, work: Path, label: str) -> None:
    """Mount an overlay, highest lower layer first, unless something is mounted there."""
    if not is_mount(folder):
        layers = ":".join(map(str, lower))
        options = f"lowerdir={layers},upperdir={upper},workdir={work}"
        programs.run("mount", "-t", "overlay", "-o", options, label, str(folder))


def stack(folder: Path, *, lower: tuple[Path, ...], label: str) -> None:
    """Mount an overlay that nobody can write to, highest layer first, unless something is mounted there."""
    if not is_mount(folder):
        options = f"ro,lowerdir={':'.join(map(str, lower))}"
        programs.run("mount", "-t", "overlay", "-o", options, label, str(folder))


def unmount_under(folder: Path) -> None:
    """Unmount everything at and below a folder; LauncherError names what stays."""
    for point in reversed(under(folder)):
        if programs.attempt("umount", str(point)).returncode:
            # a process that is just ending still holds it: the kernel finishes when that is gone
            programs.attempt("umount", "-l", str(point))
    if left := under(folder):
        raise LauncherError(Problem(f"still mounted: {', '.join(map(str, left))}", where=str(folder)))


def _lower(options: str) -> list[str]:
    words = [word.removeprefix("lowerdir=") for word in options.split(",") if word.startswith("lowerdir=")]
    return words[0].split(":") if words else []


def _unescape(text: str) -> str:
    return text.encode().decode("unicode_escape")
