"""from_ansible: an Ansible YAML inventory, read as the start of one of ours."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from launcher.flows.init import POOLS, Start
from launcher.load.collect import Collector
from launcher.load.data import Data, roots_of
from launcher.load.document import Document, Location, Value
from launcher.load.hosts import is_address
from launcher.load.shape import is_null
from launcher.model.inventory import PoolName
from launcher.model.problem import InputError, Problem

RANGE = re.compile(r"\[(\w+):(\w+)(?::(\d+))?\]")
OLD_NAMES = {
    "ansible_ssh_host": "ansible_host",
    "ansible_ssh_user": "ansible_user",
    "ansible_ssh_port": "ansible_port",
}
MOST = 4096
"""Hosts one range may stand for."""


@dataclass(slots=True)
class _Group:
    """What all places that name a group say of it, together."""

    hosts: dict[str, None] = field(default_factory=dict)
    children: dict[str, None] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Tree:
    """The whole file, before variables are inherited."""

    document: Document
    groups: dict[str, _Group] = field(default_factory=dict)
    host_variables: dict[str, dict[str, str]] = field(default_factory=dict)
    problems: Collector = field(default_factory=Collector)


def read_ansible(path: Path, *, cluster: str) -> Start:
    """Hosts, addresses and login, and as pools the groups that are called like ours.

    Groups may nest, hosts may be ranges (`gpu[01:06]`), variables are inherited as Ansible does it.
    InputError for what cannot be read; what we have no place for is noted in the Start.
    """
    tree = _read_tree(path)
    variables = {name: _inherited(name, tree) for name in tree.host_variables}
    pools: dict[PoolName, tuple[str, ...]] = {
        pool: hosts for pool in POOLS if (hosts := tuple(_members(pool, tree)))
    }
    notes: list[str] = []
    common = partial(_common, variables, notes=notes)
    return Start(
        cluster=cluster,
        hosts={name: _address(name, found) for name, found in variables.items()},
        pools=pools,
        user=common("ansible_user") or "root",
        port=common("ansible_port") or "22",
        identity=common("ansible_ssh_private_key_file"),
        notes=tuple(notes),
    )


def _read_tree(path: Path) -> _Tree:
    data = Data(roots_of(None))
    text = data.text(path)
    if re.search(r"(?m)^\[[\w:.-]+\]\s*$", text):
        do = f"convert it: ansible-inventory -i {path} --list --yaml --output hosts.yaml"
        raise InputError(Problem("this is an INI inventory, expected YAML", where=str(path), do=do))
    tree = _Tree(data.document(path))
    for group, body in _mapping(tree.document.values, (), tree).items():
        _read_group(group, body, (group,), tree)
    tree.problems.keep(_circles(tree))
    if not tree.host_variables:
        tree.problems.keep([Problem("no group has hosts", where=str(path), do="add `hosts:` to a group")])
    tree.problems.raise_any()
    return tree


def _read_group(name: str, body: Value, location: Location, tree: _Tree) -> None:
    group = tree.groups.setdefault(name, _Group())
    fields = _mapping(body, location, tree)
    group.variables |= _variables(fields.get("vars"), (*location, "vars"), tree)
    for key, value in _mapping(fields.get("hosts"), (*location, "hosts"), tree).items():
        place = (*location, "hosts", key)
        found = _variables(value, place, tree)
        for host in tree.problems.attempt(partial(_expanded, key, tree.document.place(place))) or ():
            group.hosts[host] = None
            tree.host_variables.setdefault(host, {}).update(found)
    for child, value in _mapping(fields.get("children"), (*location, "children"), tree).items():
        group.children[child] = None
        _read_group(child, value, (*location, "children", child), tree)


def _mapping(value: Value | None, location: Location, tree: _Tree) -> Mapping[str, Value]:
    if isinstance(value, dict):
        return value
    if not is_null(value):
        where = tree.document.place(location)
        tree.problems.keep(
            [Problem(f"`{location[-1]}` holds no keys", where=where, do="write `name:` lines")]
        )
    return {}


def _variables(value: Value | None, location: Location, tree: _Tree) -> dict[str, str]:
    """The variables that are text; the others mean nothing to us."""
    found = _mapping(value, location, tree)
    return {OLD_NAMES.get(key, key): str(item) for key, item in found.items() if isinstance(item, str)}


def _circles(tree: _Tree) -> Iterator[Problem]:
    for name in tree.groups:
        if name in _below(name, tree):
            yield Problem(f"group `{name}` is its own child", where=tree.document.path, do="remove it there")


def _below(name: str, tree: _Tree) -> dict[str, None]:
    """All groups under a group, in the file's order."""
    found: dict[str, None] = {}
    waiting = list(tree.groups[name].children)
    while waiting:
        child = waiting.pop(0)
        if child not in found:
            found[child] = None
            waiting = [*tree.groups[child].children, *waiting]
    return found


def _members(group: str, tree: _Tree) -> dict[str, None]:
    """The hosts of a group and of all groups under it."""
    if group not in tree.groups:
        return {}
    return {host: None for name in (group, *_below(group, tree)) for host in tree.groups[name].hosts}


def _inherited(host: str, tree: _Tree) -> dict[str, str]:
    """A host's variables: `all`, then its groups from the outermost in, then its own."""
    groups = [name for name in tree.groups if name == "all" or host in _members(name, tree)]
    groups.sort(key=lambda name: (name != "all", -len(_below(name, tree)), name))
    layers = [*(tree.groups[name].variables for name in groups), tree.host_variables[host]]
    return {key: value for layer in layers for key, value in layer.items()}


def _expanded(text: str, where: str) -> tuple[str, ...]:
    """`gpu[01:03]` → its names, as Ansible reads ranges: numbers keep their zeros, letters count too."""
    parts: list[list[str]] = []
    end = 0
    for found in RANGE.finditer(text):
        parts += [[text[end : found.start()]], _counted(found, where)]
        end = found.end()
        if not parts[-1]:
            raise InputError(Problem(f"range `{found[0]}` is empty", where=where, do="turn it round"))
    parts.append([text[end:]])
    names = tuple(itertools.islice(map("".join, itertools.product(*parts)), MOST + 1))
    if len(names) > MOST or "[" in "".join(part[0] for part in parts):
        what = f"`{text}` is no range of up to {MOST} hosts"
        raise InputError(Problem(what, where=where, do="write it like gpu[01:06]"))
    return names


def _counted(found: re.Match[str], where: str) -> list[str]:
    first, last, step = found[1], found[2], int((found[3] or "1")[:9]) or 1
    if first.isdigit() and last.isdigit() and len(last) < 10:
        numbers = itertools.islice(range(int(first), int(last) + 1, step), MOST + 1)
        return [str(n).zfill(len(first) if first.startswith("0") else 0) for n in numbers]
    if len(first) == len(last) == 1 and first.isalpha() and last.isalpha():
        return [chr(n) for n in range(ord(first), ord(last) + 1, step)]
    raise InputError(
        Problem(f"range `{found[0]}` cannot be read", where=where, do="write it like gpu[01:06]")
    )


def _address(name: str, variables: Mapping[str, str]) -> str:
    return variables.get("ansible_host") or (name if is_address(name) else "")


def _common(variables: Mapping[str, Mapping[str, str]], name: str, *, notes: list[str]) -> str:
    """The one value that all hosts have; a note if they differ, or if it is a template."""
    values = sorted({found.get(name, "") for found in variables.values()})
    if len(values) > 1 or "{{" in values[0]:
        shown = ", ".join(value or "none" for value in values[:4])
        notes.append(f"{name} ({shown}): write it into an ssh_config, host by host")
        return ""
    return values[0]
