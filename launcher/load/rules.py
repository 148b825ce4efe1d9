"""What names and paths may look like, and which files an inventory must find; knows no hosts, no pools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from launcher.load.document import Document
from launcher.load.form import InventoryFile
from launcher.load.front import secret_problems
from launcher.load.schema import near
from launcher.load.secrets import source_problems
from launcher.load.wording import count
from launcher.model.problem import Problem
from launcher.model.profile import Hardware, Layout, Profile, Settings

CLUSTER = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
FOLDER = re.compile(r"(/[A-Za-z0-9._-]+)+")
"""Absolute, and free of what systemd, YAML and the shell would read as their own."""
JUMP = re.compile(r"([^@\s]+@)?[^@:\s]+(:[0-9]{1,5})?")
VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")


def file_problems(file: InventoryFile, document: Document) -> Iterator[Problem]:
    """All that can be seen in the inventory alone."""
    yield from cluster_problems(file.cluster, document.place(("cluster",)))
    for kind in ("hardware", "model") if file.layout else ():
        if not getattr(file, kind):
            what = f"`{kind}` is missing, layout `{file.layout}` serves"
            do = f"add `{kind}:`, a file in configs/{kind if kind == 'hardware' else kind + 's'}/"
            yield Problem(what, where=document.place(("layout",)), do=do)
    yield from _path_problems(file, document)
    yield from _ssh_problems(file, document)
    yield from name_problems(file.settings.values(), file.environment.values())
    yield from source_problems(file.secrets)
    yield from secret_problems(file, document)
    yield from accept_problems(file.accept)


def cluster_problems(cluster: str, where: str) -> Iterator[Problem]:
    """A fleet's name becomes part of names of files and labels."""
    if not CLUSTER.fullmatch(cluster):
        what = f"cluster `{cluster}` is not lower-case letters, digits and `-`"
        yield Problem(what, where=where, do="rename it, for instance `prod`")


def profile_problems(profile: Profile) -> Iterator[Problem]:
    """Names of settings and variables in configs/."""
    for part in (profile.model, profile.hardware, profile.layout):
        if part is not None:
            yield from name_problems(part.settings.values(), part.environment.values())
    if profile.layout is not None:
        layout = profile.layout
        yield from accept_problems(layout.accept)
        for pool in layout.engines.values():
            yield from name_problems([pool.settings], [pool.environment])
        if layout.router is not None:
            yield from name_problems([layout.router.settings], [layout.router.environment])
        yield from _layout_problems(layout)
        yield from _gpu_problems(layout, profile.hardware)
    if profile.router is not None:
        yield from name_problems([profile.router.settings], [])


def _layout_problems(layout: Layout) -> Iterator[Problem]:
    """Pools that do not go together."""
    have = " and ".join(layout.engines)
    if not have:
        what = f"layout {layout.name} has no engine pool"
        yield Problem(what, where=layout.source, do="add `prefill:`, `decode:`, or both and `router:`")
    elif layout.disaggregated and layout.router is None:
        what = f"layout {layout.name} has prefill and decode, but no router"
        yield Problem(what, where=layout.source, do="add `router: {}`, or remove one of the two")
    elif layout.router is not None and not layout.disaggregated:
        what = f"layout {layout.name} has a router, but {have} alone"
        why = "the router sends each request to prefill and then to decode; one pool answers by itself"
        yield Problem(what, where=layout.router.source, why=why, do="remove `router:`, or add the other pool")


def _gpu_problems(layout: Layout, hardware: Hardware | None) -> Iterator[Problem]:
    """GPUs that an instance leaves over on each of its hosts."""
    for name, pool in layout.engines.items():
        taken = pool.tensor_parallel * pool.data_parallel // pool.hosts_per_instance
        if hardware and 0 < taken <= hardware.gpus_per_host and hardware.gpus_per_host % taken:
            what = f"{name} takes {count(taken, 'GPU')} a host, which does not divide "
            what += f"the {hardware.gpus_per_host} of hardware {hardware.name}"
            why = f"tensor_parallel {pool.tensor_parallel} × data_parallel {pool.data_parallel} over "
            why += count(pool.hosts_per_instance, "host")
            yield Problem(what, where=pool.source, why=why, do="change tensor_parallel or data_parallel")


def name_problems(settings: Iterable[Settings], environment: Iterable[Settings]) -> Iterator[Problem]:
    """Settings are named without dashes in front, variables in upper case."""
    for name, setting in ((n, s) for by_name in settings for n, s in by_name.items()):
        if name.startswith("-"):
            bare = name.lstrip("-")
            yield Problem(
                f"setting `{name}` has dashes in front", where=setting.source, do=f"write `{bare}:`"
            )
    for name, setting in ((n, s) for by_name in environment for n, s in by_name.items()):
        if not VARIABLE.fullmatch(name):
            what = f"environment variable `{name}` is not upper-case letters, digits and `_`"
            do = f"write `{re.sub('[^A-Z0-9_]', '_', name.upper())}:`"
            yield Problem(what, where=setting.source, do=do)


def _path_problems(file: InventoryFile, document: Document) -> Iterator[Problem]:
    for word, path in (("shared", file.paths.shared), ("local", file.paths.local)):
        where = document.place(("paths", word))
        if not path.startswith("/"):
            what = f"paths.{word} is `{path}`, expected an absolute path"
            yield Problem(what, where=where, do=f"write it from the root: /{path}")
        elif not FOLDER.fullmatch(path) or ".." in path.split("/"):
            what = f"paths.{word} is `{path}`, expected folders of letters, digits, `.`, `_` and `-`"
            yield Problem(what, where=where, do="write a path without spaces, `..` and a slash at the end")
    if file.paths.shared == file.paths.local:
        what = f"paths.local is `{file.paths.local}`, the same as paths.shared"
        why = "weights and software are copied from the one to the other"
        do = "name a folder on a disk of the hosts"
        yield Problem(what, where=document.place(("paths", "local")), why=why, do=do)


def accept_problems(accept: Settings) -> Iterator[Problem]:
    """A finding is accepted for a reason. Whether there is such a rule is seen where rules are read."""
    for rule, reason in accept.items():
        if not isinstance(reason.value, str) or not reason.value.strip():
            what = f"`accept` has no reason for {rule}"
            yield Problem(what, where=reason.source, do=f"write `{rule}: why`, or remove the line")


def _ssh_problems(file: InventoryFile, document: Document) -> Iterator[Problem]:
    ssh = file.ssh
    for word, name in (("config", ssh.config), ("known_hosts", ssh.known_hosts), ("identity", ssh.identity)):
        if name and not beside(document.path, name).is_file():
            yield no_such_file(document, word, name)
    if ssh.jump and not JUMP.fullmatch(ssh.jump):
        what = f"ssh.jump is `{ssh.jump}`, expected [user@]host[:port]"
        yield Problem(what, where=document.place(("ssh", "jump")), do="write it like ops@bastion:22")
    if ssh.sudo_password and ssh.sudo_password not in file.secrets:
        what = f"ssh.sudo_password names the secret `{ssh.sudo_password}`, which `secrets` does not have"
        where = document.place(("ssh", "sudo_password"))
        yield Problem(what, where=where, do=near(ssh.sudo_password, file.secrets))


def no_such_file(document: Document, word: str, name: str) -> Problem:
    """A file under `ssh` that is not there."""
    what = f"ssh.{word} names `{name}`, no such file"
    why = f"looked for {beside(document.path, name)}"
    return Problem(what, document.place(("ssh", word)), why, do="correct it or make the file")


def beside(inventory: str, name: str) -> Path:
    """A file that an inventory names: relative to its folder, `~` is the user's home."""
    return Path(inventory).parent / (Path(name).expanduser() if name.startswith("~/") else name)
