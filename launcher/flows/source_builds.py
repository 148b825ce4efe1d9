"""Packages that no index has: source fetched here, built by a job on a host; knows git and a fleet."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.execute.hands import Hands
from launcher.execute.jobs import RemoteJob
from launcher.flows import wheel_job
from launcher.flows.stack import Fetching, source_path
from launcher.load.data import Data
from launcher.model.job import Job, folder_of, name_of
from launcher.model.problem import LauncherError, Problem
from launcher.model.run import Listener
from launcher.model.source_build import SourceBuild

FETCH_WITHIN_S = 900
TAR = ("--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--exclude=.git")
"""The same source is the same file, whoever packs it."""


@dataclass(frozen=True, slots=True)
class BuildHost:
    """A Builder of flows/stack.py: has packages built on one host that sees the stack's folder.

    The job survives its controller: the same build, asked for again, attaches to it or takes what it made.
    """

    fleet: Hands
    host: str
    shared: str
    """`paths.shared` as the host sees it."""
    data: Data
    listener: Listener

    def __call__(self, fetching: Fetching, name: str, folder: Path) -> Path:
        """The wheel of one of the stack's builds. LauncherError where source or build fail."""
        recipe = fetching.stack.builds[name]
        source = source_path(fetching.stack, name, folder)
        if not source.exists():
            fetch_source(name, recipe, source)
        lock = build_lock(fetching, name)
        spec = spec_of(fetching, name, f"{self.shared}/stacks/{fetching.stack.name}", lock)
        job = self._job(spec, lock, recipe.within_s)
        remote = RemoteJob(self.fleet, self.host, job, self.listener, f"{name} {recipe.version}")
        remote.begin(remote.state())
        made = self._made(folder / "built", name, recipe)
        remote.discard()
        return made

    def _job(self, spec: Mapping[str, object], lock: str, within_s: int) -> Job:
        """Its result is the wheel: whoever asks does not see it, so what has ended is not taken."""
        builder = self.data.find("roles/python-env/files/build_env.py")
        assert builder is not None, "it is one of the files of role python-env"
        name = name_of("wheel", spec)
        folder = folder_of(name)
        files = {
            "wheel_job.py": Path(wheel_job.__file__).read_bytes(),
            "build_env.py": builder.read_bytes(),
            "build.lock": lock.encode(),
            "spec.json": json.dumps(spec, indent=1).encode(),
        }
        words = ("/usr/bin/python3", f"{folder}/wheel_job.py", f"{folder}/spec.json")
        return Job(name, words, within_s, files={f"{folder}/{f}": content for f, content in files.items()})

    def _made(self, built: Path, name: str, recipe: SourceBuild) -> Path:
        found = sorted(built.glob(f"{name.replace('-', '_')}-{recipe.version}-*.whl"))
        if not found:
            what = f"{name} was built, and its wheel is not where this machine looks"
            do = f"see that --to is {self.shared} of {self.host}"
            raise LauncherError(Problem(what, where=str(built), do=do))
        return found[-1]


def build_lock(fetching: Fetching, name: str) -> str:
    """Pins of the environment that a package is built in: the stack's own, and the build's over them."""
    own = {pin.name: pin for pin in fetching.pins if pin.name not in fetching.stack.builds}
    over = {pin.name: pin for pin in fetching.tools.get(name, ())}
    return "".join(f"{pin.requirement()}\n" for _, pin in sorted({**own, **over}.items()))


def spec_of(fetching: Fetching, name: str, folder: str, lock: str) -> dict[str, object]:
    """What the job is to do, with `folder` the stack's as the host sees it."""
    stack, recipe = fetching.stack, fetching.stack.builds[name]
    return {
        "name": name,
        "version": recipe.version,
        "python": f"/usr/bin/python{stack.python}",
        "source": f"{folder}/sources/{source_path(stack, name, Path()).name}",
        "wheels": f"{folder}/wheels",
        "out": f"{folder}/built",
        "digest": hashlib.sha256(lock.encode()).hexdigest(),
        "environment": dict(recipe.environment),
    }


def fetch_source(name: str, recipe: SourceBuild, path: Path) -> None:
    """Pack one commit and its submodules into `path`. LauncherError where git does not give it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".source-", dir=path.parent) as folder:
        tree, part = f"{folder}/{name}-{recipe.commit[:12]}", f"{folder}/source.tar"
        _run("git", "init", "-q", tree)
        _run("git", "-C", tree, "fetch", "-q", "--depth", "1", recipe.git, recipe.commit)
        _run("git", "-C", tree, "checkout", "-q", "--detach", recipe.commit)
        _run("git", "-C", tree, "submodule", "update", "-q", "--init", "--recursive", "--depth", "1")
        _run("tar", *TAR, "-C", tree, "-cf", part, ".")
        os.replace(part, path)


def _run(*words: str) -> None:
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=FETCH_WITHIN_S
        )
    except FileNotFoundError:
        do = f"apt-get install {words[0]}"
        raise LauncherError(Problem(f"no `{words[0]}` on this machine", do=do)) from None
    except subprocess.TimeoutExpired:
        what = f"`{' '.join(words[:4])}` did not end within {FETCH_WITHIN_S} s"
        raise LauncherError(Problem(what, do="run it again")) from None
    if done.returncode:
        what = f"`{' '.join(words[:4])}` ended with {done.returncode}"
        raise LauncherError(
            Problem(what, why=done.stderr.strip()[-800:], do="see `git` and `commit` of the build")
        )
