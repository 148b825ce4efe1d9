"""The package mirror: a folder of Debian packages and the index that apt reads; knows apt, no stack."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from launcher.flows.digests import sha256_of
from launcher.model.problem import LauncherError, Problem

WITHIN_S = 900
INDEX = "Packages"
INSTALLS = re.compile(
    r"^Inst (?P<name>\S+) (?:\[\S+\] )?\((?P<version>\S+) .*\[(?P<architecture>\w+)\]\)", re.MULTILINE
)
FILES = re.compile(r"^'\S+' (?P<file>\S+) \d+ SHA256:(?P<digest>[0-9a-f]{64})$", re.MULTILINE)


def pinned(packages: Mapping[str, str], *, status: Path | None, work: Path) -> Mapping[str, str]:
    """The files that `fill` would bring, and the sha256 that the archives' signed indexes give each."""
    work.mkdir(parents=True, exist_ok=True)
    return _files(_closure(packages, status or _nothing_installed(work)))


def fill(
    folder: Path, packages: Mapping[str, str], *, status: Path | None, tell: Callable[[str, int, int], None]
) -> Mapping[str, str]:
    """Make `folder` hold these packages (name → version or empty) and all they need, with an index of them
    alone. What else is there stays.

    `status` is a dpkg status file of the hosts: what it lists as installed is left out. Without one the
    folder gets everything down to the C library. File name → sha256. LauncherError where apt refuses.
    """
    folder.mkdir(parents=True, exist_ok=True)
    work = folder.parent / ".debs"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    needed = _closure(packages, status or _nothing_installed(work))
    wanted = _files(needed)
    whole = {path.name for path in folder.glob("*.deb") if wanted.get(path.name) == sha256_of(path)}
    missing = [package for file, package in _packages(wanted, needed) if file not in whole]
    tell("packages", len(needed) - len(missing), len(needed))
    if missing:
        _run("apt-get", "download", "-qq", *missing, inside=work)
        for path in work.glob("*.deb"):
            os.replace(path, folder / path.name)
        tell("packages", len(needed), len(needed))
    (work / INDEX).write_text("".join(_stanzas(folder, wanted)), encoding="utf-8")
    os.replace(work / INDEX, folder / INDEX)
    shutil.rmtree(work)
    return {**wanted, INDEX: sha256_of(folder / INDEX)}


def _nothing_installed(work: Path) -> Path:
    (work / "status").touch()
    return work / "status"


def _closure(packages: Mapping[str, str], status: Path) -> list[str]:
    """What apt would install where `status` says what there is, as `name:architecture=version`."""
    if not packages:
        return []
    wanted = [f"{name}={version}" if version else name for name, version in packages.items()]
    said = _run(
        "apt-get", "install", "--simulate", "-qq", "--no-install-recommends",
        "-o", f"Dir::State::status={status}", "-o", "APT::Get::AutomaticRemove=false",
        "--", *wanted,
    )  # fmt: skip
    return sorted({f"{m['name']}:{m['architecture']}={m['version']}" for m in INSTALLS.finditer(said)})


def _files(needed: list[str]) -> dict[str, str]:
    """The file of each package, and the sha256 that the archive's signed index gives it."""
    if not needed:
        return {}
    said = _run("apt-get", "download", "--print-uris", "-qq", *needed)
    return dict(sorted((m["file"], m["digest"]) for m in FILES.finditer(said)))


def _packages(files: Iterable[str], needed: list[str]) -> Iterator[tuple[str, str]]:
    """Each file with the package that it is, by the name that starts it."""
    by_name = {package.split(":")[0]: package for package in needed}
    return ((file, by_name[file.split("_")[0]]) for file in files)


def _stanzas(folder: Path, files: Mapping[str, str]) -> Iterator[str]:
    """The index: each package's own control text, and where and what its file is."""
    for name, digest in files.items():
        control = _run("dpkg-deb", "--field", str(folder / name)).strip()
        yield f"{control}\nFilename: ./{name}\nSize: {(folder / name).stat().st_size}\nSHA256: {digest}\n\n"


def _run(*words: str, inside: Path | None = None) -> str:
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=inside, timeout=WITHIN_S
        )
    except FileNotFoundError:
        what = f"no `{words[0]}` on this machine"
        why = "packages are fetched with Debian's own tools"
        raise LauncherError(Problem(what, why=why, do="build the stack on Debian or Ubuntu")) from None
    except subprocess.TimeoutExpired:
        what = f"`{words[0]}` did not end within {WITHIN_S} s"
        raise LauncherError(Problem(what, do="run it again: what it has fetched is kept")) from None
    if done.returncode:
        what = f"`{' '.join(words[:2])}` ended with {done.returncode}"
        do = "bring apt's lists up to date: apt-get update"
        raise LauncherError(Problem(what, why=(done.stderr or done.stdout).strip()[-800:], do=do))
    return done.stdout
