"""stack: all that hosts install, fetched or built once into a folder they share; knows no host."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from launcher.flows import fetched, mirror, pinning, wheelhouse
from launcher.flows.digests import sha256_of
from launcher.flows.wheelhouse import Pin
from launcher.load.choice import Choice
from launcher.load.collect import Collector
from launcher.load.data import Data
from launcher.load.profile import read_stack
from launcher.model.problem import InputError, LauncherError, Problem
from launcher.model.profile import Stack
from launcher.model.run import Event, Listener
from launcher.record.whole import write_whole

LOCK = "requirements.lock"
FOLDERS = ("wheels", "debs", "sources")
"""What a built stack has beside its lock and its record."""


@dataclass(frozen=True, slots=True)
class Built:
    """A stack in its folder."""

    folder: Path
    wheels: int
    packages: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Fetching:
    """What goes into a stack's folder: what its locks pin, for whom, and who builds what no index has."""

    stack: Stack
    lock: Path
    pins: tuple[Pin, ...]
    """Of its own lock."""
    tools: Mapping[str, tuple[Pin, ...]]
    """Package that is built → what its build alone needs."""
    target: wheelhouse.Target
    builder: Builder | None = None

    @property
    def fetched(self) -> tuple[Pin, ...]:
        """All that has wheels to fetch, once each."""
        known = {(pin.name, pin.version): pin for some in self.tools.values() for pin in some}
        known |= {(p.name, p.version): p for p in self.pins if p.name not in self.stack.builds}
        return tuple(known.values())


Wheel: TypeAlias = tuple[Path, str]
"""A wheel that was built here, and its sha256."""
Builder = Callable[["Fetching", str, Path], Path]
"""Builds a package of the stack in the stack's folder: its wheel, still beside `wheels`."""


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


def kept(stack: Stack, shared: Path) -> fetched.Folder:
    """That folder, and how it is filled."""
    again = f"dsv32-launch stack build {stack.name} --to {shared}"
    return fetched.Folder(folder_of(stack, shared), "stack", stack.name, FOLDERS, again)


def locks(stack: Stack, data: Data) -> Mapping[str, str]:
    """File name → text of the stack's lock and those of its builds, resolved anew.

    What is built from source has no wheel to resolve: its pin stays. LauncherError where uv finds nothing.
    """
    if not stack.requirements:
        do = f"name what it is made of: `requirements: [vllm=={stack.engine_version or '…'}]`"
        raise InputError(Problem(f"stack {stack.name} has no requirements", where=stack.source, do=do))
    target = target_of(stack)
    wish = pinning.Wish(stack.requirements, target, stack.until, {*stack.leaves_out, *stack.builds})
    lock = data.find(f"configs/stacks/{stack.lock}") if stack.lock else None
    kept = [pin for pin in (wheelhouse.read_lock(lock) if lock else ()) if pin.name in stack.builds]
    found = {stack.lock or f"{stack.name}.lock": pinning.lock_text(stack.name, wish, kept)}
    for build in stack.builds.values():
        if build.tools:
            tools = pinning.Wish(build.tools, target, stack.until)
            found[build.tools_lock] = pinning.lock_text(stack.name, tools)
    return found


def target_of(stack: Stack) -> wheelhouse.Target:
    """Whom its wheels are for; InputError where it does not say."""
    target = wheelhouse.Target(stack.python, stack.variables.get("glibc", ""))
    if not (target.python and target.glibc):
        what = f"stack {stack.name} does not say which Python and C library the hosts have"
        do = 'add `python: "3.12"` and `variables: {glibc: "2.39"}`'
        raise InputError(Problem(what, where=stack.source, do=do))
    return target


def fetching_of(stack: Stack, data: Data, builder: Builder | None = None) -> Fetching:
    """What is to be fetched. InputError for a stack without a lock, or with one of other versions."""
    lock = data.find(f"configs/stacks/{stack.lock}") if stack.lock else None
    if lock is None:
        raise InputError(_no_lock(stack))
    tools = {
        name: wheelhouse.read_lock(path)
        for name, build in stack.builds.items()
        if build.tools_lock and (path := data.find(f"configs/stacks/{build.tools_lock}"))
    }
    made = Fetching(stack, lock, wheelhouse.read_lock(lock), tools, target_of(stack), builder)
    if wrong := tuple(disagreements(stack, made.pins)):
        raise InputError(*wrong)
    return made


def disagreements(stack: Stack, pins: Iterable[Pin]) -> Iterator[Problem]:
    """Versions that a stack names, its roles and checks believe, and its lock does not have."""
    locked = {pin.name: pin for pin in pins}
    told = {name: (stack.variables[name], package) for name, package in stack.locked_as.items()}
    for name, (version, package) in told.items():
        pin = locked.get(package)
        if f"{pin.version}.".startswith(f"{version}.") if pin else package in stack.builds:
            continue
        found = pin.version if pin else "no such package"
        what = f"stack {stack.name} says {name} {version}, its lock has {package} {found}"
        do = f"correct `{name}`, or resolve it anew: dsv32-launch stack lock {stack.name}"
        yield Problem(what, where=pin.where if pin else stack.source, do=do)


def build(
    stack: Stack,
    to: Path,
    listener: Listener,
    *,
    data: Data,
    status: Path | None = None,
    builder: Builder | None = None,
) -> Built:
    """Fetch the stack's wheels and packages into `to`/stacks/<name>; what is there and whole is kept.

    `to` is `paths.shared` as this machine sees it; `status` a dpkg status file of the hosts (see
    mirror.fill); `builder` makes what `builds` names. What hosts install from changes at the end, lock and
    record by a rename each; what neither names goes after that. InputError for a stack without a lock;
    LauncherError where pip or apt refuse, a build fails or is missing, or another build of it runs.
    """
    fetching = fetching_of(stack, data, builder)
    folder = folder_of(stack, to)

    def tell(what: str, done: int, total: int) -> None:
        data = {"done": done, "total": total}
        listener(Event("job", text=f"{what} {done}/{total}", subject=f"stack {stack.name}", data=data))

    with fetched.alone(kept(stack, to)):
        built = {name: _built(fetching, name, folder) for name in stack.builds}
        if unbuilt := tuple(_unbuilt(fetching, built, to)):
            raise LauncherError(*unbuilt)
        wheels = wheelhouse.fill(folder / "wheels", fetching.fetched, fetching.target, tell=tell)
        packages = mirror.fill(folder / "debs", stack.packages, status=status, tell=tell)
        wheels = {**wheels, **{path.name: digest for path, digest in _from_source(fetching, built, folder)}}
        sources = [path for path in sources_of(stack, folder) if path.exists()]
        digests = {
            LOCK: sha256_of(fetching.lock),
            **{f"wheels/{name}": digest for name, digest in wheels.items()},
            **{f"debs/{name}": digest for name, digest in packages.items()},
            **{f"sources/{path.name}": sha256_of(path) for path in sources},
        }
        write_whole(folder / LOCK, fetching.lock.read_bytes())
        size_bytes = fetched.record(kept(stack, to), digests)
    return Built(folder, len(wheels), sum(name.endswith(".deb") for name in packages), size_bytes)


def verify(stack: Stack, at: Path, data: Data) -> tuple[Problem, ...]:
    """What is wrong with the stack below `at`, every byte of it read; () if nothing is.

    Files are held against the record, the record against the lock, the lock against the stack's versions.
    """
    folder = kept(stack, at)
    try:
        files = fetched.recorded(folder, must_have=LOCK)
    except LauncherError as error:
        return error.problems
    return (*_unlocked(fetching_of(stack, data), files, folder), *fetched.wrong(folder, files))


def sources_of(stack: Stack, folder: Path) -> tuple[Path, ...]:
    """Where the source of each of its builds lies."""
    return tuple(source_path(stack, name, folder) for name in stack.builds)


def source_path(stack: Stack, name: str, folder: Path) -> Path:
    """Where the source of one of its builds lies."""
    return folder / "sources" / f"{name}-{stack.builds[name].commit}.tar"


def _unbuilt(fetching: Fetching, built: Mapping[str, Wheel | None], to: Path) -> Iterator[Problem]:
    """Each package whose wheel is not there, where nobody is to build it."""
    stack = fetching.stack
    for name in built if fetching.builder is None else ():
        if built[name] is None:
            what = f"{name} {stack.builds[name].version} is built from source, and its wheel is not there"
            do = f"dsv32-launch stack build {stack.name} --to {to} --on HOST -i INVENTORY"
            yield Problem(what, where=str(folder_of(stack, to) / "wheels"), do=do)


def _built(fetching: Fetching, name: str, folder: Path) -> Wheel | None:
    """The wheel among those there that a pin names."""
    hashes = _hashes(fetching, name)
    made = {sha256_of(path): path for path in (folder / "wheels").glob(f"{name.replace('-', '_')}-*.whl")}
    return next(((made[digest], digest) for digest in hashes if digest in made), None)


def _hashes(fetching: Fetching, name: str) -> Sequence[str]:
    return next((pin.hashes for pin in fetching.pins if pin.name == name), ())


def _from_source(fetching: Fetching, built: Mapping[str, Wheel | None], folder: Path) -> Iterator[Wheel]:
    """The wheel of each package that is built."""
    for name, there in built.items():
        if there:
            yield there
        elif fetching.builder:
            yield _made(fetching, fetching.builder, name, folder)


def _made(fetching: Fetching, builder: Builder, name: str, folder: Path) -> Wheel:
    """A new wheel: as its pin says, or it is not taken."""
    stack, hashes = fetching.stack, _hashes(fetching, name)
    version, path = stack.builds[name].version, builder(fetching, name, folder)
    digest = sha256_of(path)
    if digest not in hashes:
        was = f"its pin is {hashes[0][:12]}" if hashes else "the lock has no pin of it"
        what = f"{name} {version} was built, its wheel is {digest[:12]}; {was}"
        line = f"{name}=={version} --hash=sha256:{digest}"
        do = f"put into configs/stacks/{stack.lock}, in order of names: {line}"
        raise LauncherError(Problem(what, where=str(path), do=do))
    os.replace(path, folder / "wheels" / path.name)
    return folder / "wheels" / path.name, digest


def _unlocked(fetching: Fetching, files: Mapping[str, str], folder: fetched.Folder) -> Iterator[Problem]:
    """What the record has and the lock does not know, and what the lock pins and was not built."""
    stack = fetching.stack
    if files[LOCK] != stack.lock_digest:
        what = f"built was lock {files[LOCK][:12]}, the stack's is {stack.lock_digest[:12]}"
        yield Problem(what, where=str(folder.path / LOCK), do=folder.again)
        return
    pins = {
        pin: set(pin.hashes)
        for pin in (*fetching.pins, *(p for some in fetching.tools.values() for p in some))
    }
    wheels = {digest: name for name, digest in files.items() if name.startswith("wheels/")}
    for pin, hashes in pins.items():
        if not hashes & wheels.keys():
            what = f"the lock pins {pin.name} {pin.version}, and no wheel of it was built"
            yield Problem(what, where=pin.where, do=folder.again)
    for digest in wheels.keys() - set().union(*pins.values()):
        yield Problem(
            f"{wheels[digest]} is of no pin of the lock",
            where=str(folder.path / wheels[digest]),
            do=folder.again,
        )


def _no_lock(stack: Stack) -> Problem:
    return Problem(
        f"stack {stack.name} names no lock: there is nothing to fetch",
        where=stack.source,
        why="hosts install hashed wheels alone, and its versions have not been locked yet",
        do=f"dsv32-launch stack lock {stack.name}, and name the file as `lock`",
    )
