"""Requirements → a lock of hashed wheels; knows uv, no folder of a stack."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

from launcher.flows.wheelhouse import Pin, Target
from launcher.model.problem import LauncherError, Problem

WITHIN_S = 600
PACKAGE = re.compile(r"^\[\[packages\]\]$", re.MULTILINE)
FIELD = r'^{} = "([^"]+)"$'
WHEEL = re.compile(r'url = "[^"]*/([^"/]+\.whl)".*?sha256 = "([0-9a-f]{64})"')
HEAD = """\
# Written by `dsv32-launch stack lock {name}`: one wheel of each package, for Python {python} on Linux x86-64
# with glibc {glibc}. Installed as it stands, by no resolver.
"""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be locked."""

    requirements: Sequence[str]
    target: Target
    until: str = ""
    """Nothing newer is taken, but for what a requirement pins."""
    leaves_out: Collection[str] = ()


def lock_text(name: str, wish: Wish, kept: Iterable[Pin] = ()) -> str:
    """The lock's text, for stack `name`; `kept`: pins that no index could give.

    LauncherError where uv cannot resolve it, or a package has no wheel.
    """
    found = [*locked(wish), *((pin.name, pin.version, pin.hashes[0]) for pin in kept)]
    lines = [
        f"{package}=={version} \\\n    --hash=sha256:{digest}\n" for package, version, digest in sorted(found)
    ]
    return HEAD.format(name=name, python=wish.target.python, glibc=wish.target.glibc) + "".join(lines)


def locked(wish: Wish) -> Iterator[tuple[str, str, str]]:
    """Name, version and the sha256 of its best wheel, of each package, by name."""
    ranks = {tag: rank for rank, tag in enumerate(tags_of(wish.target))}
    for name, version, text in sorted(_packages(_resolved(wish))):
        if name in wish.leaves_out:
            continue
        fitting = [
            (min(ranks[tag] for tag in tags), digest)
            for file, digest in WHEEL.findall(text)
            if (tags := parse_wheel_filename(unquote(file))[3] & ranks.keys())
        ]
        if not fitting:
            do = "build it from source: `builds:` of the stack"
            raise LauncherError(Problem(f"{name} {version} has no wheel for these hosts", do=do))
        yield name, version, min(fitting)[1]


def tags_of(target: Target) -> Iterator[Tag]:
    """The wheels that hosts take, the best first."""
    version = tuple(int(part) for part in target.python.split("."))
    platforms = tuple(target.platforms())
    yield from cpython_tags(version, platforms=platforms)
    yield from compatible_tags(version, f"cp{target.python.replace('.', '')}", platforms)


def _packages(text: str) -> Iterator[tuple[str, str, str]]:
    """Name, version and all of it, for each package of a pylock.toml as uv writes it."""
    for part in PACKAGE.split(text)[1:]:
        name, version = (re.search(FIELD.format(field), part, re.MULTILINE) for field in ("name", "version"))
        if name and version:
            yield name[1], version[1], part


def _resolved(wish: Wish) -> str:
    """What uv writes of it. Its own configuration says where from."""
    with tempfile.TemporaryDirectory(prefix="dsv32-lock-") as folder:
        asked, made = Path(folder) / "requirements.in", Path(folder) / "pylock.toml"
        asked.write_text("".join(f"{line}\n" for line in wish.requirements), encoding="utf-8")
        words = [*_uv(), "pip", "compile", "--quiet", "--only-binary", ":all:", "--format", "pylock.toml"]
        words += ["--python-version", wish.target.python, "--python-platform", f"x86_64-{wish.target.newest}"]
        if wish.until:
            words += ["--exclude-newer", wish.until]
            pinned = [line.partition("==")[0] for line in wish.requirements if "==" in line]
            words += [word for name in pinned for word in ("--exclude-newer-package", f"{name}=false")]
        try:
            done = subprocess.run(
                [*words, "--output-file", str(made), str(asked)],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WITHIN_S, cwd=folder,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise LauncherError(Problem(f"uv did not end within {WITHIN_S} s", do="run it again")) from None
        if done.returncode:
            why = done.stderr.strip()[-800:]
            raise LauncherError(
                Problem("uv finds no versions that go together", why=why, do="change `requirements`")
            )
        return made.read_text(encoding="utf-8")


def _uv() -> list[str]:
    """Words that run uv: the program, or this Python's."""
    if program := shutil.which("uv"):
        return [program]
    if importlib.util.find_spec("uv"):
        return [sys.executable, "-m", "uv"]
    raise LauncherError(
        Problem("no `uv` on this machine", why="it resolves what a lock pins", do="pipx install uv")
    )
