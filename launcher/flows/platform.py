"""platform: all packages that hosts install below their stack, fetched once; knows no host."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.flows import fetched, mirror
from launcher.load.data import Data
from launcher.model.problem import InputError, LauncherError, Problem
from launcher.model.profile import Platform
from launcher.model.run import Event, Listener
from launcher.model.wish import Wanted
from launcher.steps.package import Params as Package
from launcher.steps.package import pins

DEBS = "debs"
INDEX = f"{DEBS}/{mirror.INDEX}"


@dataclass(frozen=True, slots=True)
class Built:
    """A platform's folder."""

    folder: Path
    packages: int
    size_bytes: int


def platform_of(wanted: Wanted) -> Platform:
    """The inventory's. InputError where it has none."""
    platform = wanted.wish.profile.platform
    if platform is None:
        what = "this inventory has no platform: hosts come with driver and RDMA"
        do = "write `platform: ubuntu-24.04` into it, or leave that to whoever makes their image"
        raise InputError(Problem(what, where=wanted.wish.inventory.path, do=do))
    return platform


def packages_of(wanted: Wanted) -> dict[str, str]:
    """Package → version or empty: all that steps install from the platform's folder, on whichever host."""
    mirrored = f"{wanted.wish.inventory.paths.shared}/platforms/{platform_of(wanted).name}/{DEBS}"
    steps = (step.want for steps in wanted.steps.values() for step in steps)
    own = (want for want in steps if isinstance(want, Package) and want.mirror == mirrored)
    return dict(sorted(pin for want in own for pin in pins(want.names).items()))


def lock_text(wanted: Wanted, *, status: Path | None) -> str:
    """A line `SHA256 FILE` for each package that this machine's apt would bring. LauncherError where apt
    finds one not at its version."""
    with tempfile.TemporaryDirectory() as work:
        files = mirror.pinned(packages_of(wanted), status=status, work=Path(work))
    return "".join(f"{digest} {name}\n" for name, digest in files.items())


def build(wanted: Wanted, to: Path, listener: Listener, *, data: Data, status: Path | None = None) -> Built:
    """Fetch the packages into `to`/platforms/<name>; what is there and whole is kept.

    `to` is `paths.shared` as this machine sees it; `status` a dpkg status file of bare hosts (see
    mirror.fill). LauncherError where apt refuses, or would bring other files than the platform's lock says.
    """
    platform = platform_of(wanted)
    folder = folder_of(platform, to, wanted)
    packages = packages_of(wanted)

    def tell(what: str, done: int, total: int) -> None:
        data = {"done": done, "total": total}
        listener(Event("job", text=f"{what} {done}/{total}", subject=f"platform {platform.name}", data=data))

    if platform.lock:
        with tempfile.TemporaryDirectory() as work:
            files = mirror.pinned(packages, status=status, work=Path(work))
        if unlocked := tuple(
            _unlocked(platform, files, data, do=f"dsv32-launch platform lock {_of(wanted)}")
        ):
            raise LauncherError(*unlocked)
    with fetched.alone(folder):
        files = mirror.fill(folder.path / DEBS, packages, status=status, tell=tell)
        digests = {f"{DEBS}/{name}": digest for name, digest in files.items()}
        return Built(folder.path, len(files) - 1, fetched.record(folder, digests))


def verify(wanted: Wanted, at: Path, data: Data) -> tuple[Problem, ...]:
    """What is wrong with the platform below `at`, every byte of it read; () if nothing is."""
    platform = platform_of(wanted)
    folder = folder_of(platform, at, wanted)
    try:
        files = fetched.recorded(folder, must_have=INDEX)
    except LauncherError as error:
        return error.problems
    debs = {name.partition("/")[2]: digest for name, digest in files.items() if name != INDEX}
    locked = _unlocked(platform, debs, data, do=folder.again) if platform.lock else ()
    return (*locked, *fetched.wrong(folder, files))


def folder_of(platform: Platform, shared: Path, wanted: Wanted) -> fetched.Folder:
    """Where roles look for it, below `paths.shared`."""
    again = f"dsv32-launch platform build {_of(wanted)} --to {shared}"
    return fetched.Folder(shared / "platforms" / platform.name, "platform", platform.name, (DEBS,), again)


def _of(wanted: Wanted) -> str:
    return str(wanted.wish.inventory.path)


def _unlocked(platform: Platform, files: Mapping[str, str], data: Data, *, do: str) -> Iterator[Problem]:
    """Files that the platform's lock does not know so, and those that it knows and nobody brings."""
    path = data.find(f"configs/platforms/{platform.lock}")
    if path is None:
        what = f"platform {platform.name} names a lock that is not there: {platform.lock}"
        raise InputError(Problem(what, where=platform.source, do=do))
    locked = {name: digest for digest, _, name in (x.partition(" ") for x in data.text(path).splitlines())}
    for name, digest in files.items():
        if locked.get(name) != digest:
            found = f"has {locked[name][:12]}" if name in locked else "does not have it"
            what = f"{name} has sha256 {digest[:12]}, the lock {found}"
            yield Problem(what, where=str(path), do=do)
    for name in sorted(locked.keys() - files.keys()):
        yield Problem(f"the lock has {name}, and nothing brings it", where=str(path), do=do)
