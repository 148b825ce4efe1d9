"""The package mirror: a folder of Debian packages and the index that apt reads; knows apt, no stack."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from launcher.flows.digests import sha256_of
from launcher.model.problem import LauncherError, Problem

WITHIN_S = 900
INSTALLS = re.compile(
    r"^Inst (?P<name>\S+) (?:\[\S+\] )?\((?P<version>\S+) .*\[(?P<architecture>\w+)\]\)", re.MULTILINE
)


def fill(
    folder: Path, packages: Mapping[str, str], *, status: Path | None, tell: Callable[[str, int, int], None]
) -> Mapping[str, str]:
    """Make `folder` hold these packages (name → version or empty) and all they need, with an index.

    `status` is a dpkg status file of the hosts: what it lists as installed is left out. Without one the
    folder gets everything down to the C library. File name → sha256. LauncherError where apt refuses.
    """
    folder.mkdir(parents=True, exist_ok=True)
    work = folder.parent / ".debs"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    needed = _closure(packages, status or _nothing_installed(work))
    names = {
        f"{name}_{version.replace(':', '%3a')}_{architecture}.deb" for name, version, architecture in needed
    }
    for path in folder.iterdir():
        if path.name not in names:
            path.unlink()
    for done, (name, version, architecture) in enumerate(needed):
        tell("packages", done, len(needed))
        if not (folder / f"{name}_{version.replace(':', '%3a')}_{architecture}.deb").exists():
            _run("apt-get", "download", "-qq", f"{name}:{architecture}={version}", inside=work)
            for path in work.glob("*.deb"):
                os.replace(path, folder / path.name)
    files = {path.name: sha256_of(path) for path in sorted(folder.glob("*.deb"))}
    (work / "Packages").write_text("".join(_stanzas(folder, files)), encoding="utf-8")
    index = folder / "Packages"
    os.replace(work / "Packages", index)
    shutil.rmtree(work)
    tell("packages", len(needed), len(needed))
    return {**files, index.name: sha256_of(index)}


def _nothing_installed(work: Path) -> Path:
    (work / "status").touch()
    return work / "status"


def _closure(packages: Mapping[str, str], status: Path) -> list[tuple[str, str, str]]:
    """What apt would install where `status` says what there is: name, version, architecture."""
    wanted = [f"{name}={version}" if version else name for name, version in packages.items()]
    said = _run(
        "apt-get", "install", "--simulate", "-qq", "--no-install-recommends",
        "-o", f"Dir::State::status={status}", "-o", "APT::Get::AutomaticRemove=false",
        "--", *wanted,
    )  # fmt: skip
    return sorted({(m["name"], m["version"], m["architecture"]) for m in INSTALLS.finditer(said)})


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
