"""ansible: our inventory served by Ansible's dynamic-inventory protocol."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from launcher.load.rules import beside
from launcher.load.schema import near
from launcher.load.ssh_config import host_name
from launcher.model.inventory import Host, Inventory
from launcher.model.problem import InputError, Problem
from launcher.model.values import Json


def listing(inventory: Inventory) -> dict[str, Json]:
    """The answer to `--list`: a group for each pool and one for the cluster, variables of all hosts."""
    pools = {str(name): {"hosts": list(pool.hosts)} for name, pool in inventory.pools.items()}
    cluster = {inventory.cluster.replace("-", "_"): {"hosts": list(inventory.hosts)}}
    return {
        **cluster,
        **pools,
        "_meta": {"hostvars": {h: host_variables(inventory, h) for h in inventory.hosts}},
    }


def host_variables(inventory: Inventory, name: str) -> dict[str, Json]:
    """The answer to `--host NAME`: how ssh reaches it. InputError if there is no such host."""
    host = inventory.hosts.get(name)
    if host is None:
        raise InputError(Problem(f"unknown host `{name}`", inventory.path, do=near(name, inventory.hosts)))
    ssh = inventory.ssh
    found: dict[str, Json] = {"ansible_ssh_common_args": shlex.join(_ssh_words(inventory))}
    if not _has_host_name(inventory, host):
        found["ansible_host"] = host.address
    if ssh.user:
        found["ansible_user"] = ssh.user
    if ssh.user not in ("", "root"):
        found["ansible_become"] = True
    if ssh.port != 22:
        found["ansible_port"] = ssh.port
    if ssh.identity:
        found["ansible_ssh_private_key_file"] = _absolute(inventory, ssh.identity)
    return found


def _ssh_words(inventory: Inventory) -> Iterator[str]:
    """Options of ssh that make it reach a host as we do."""
    ssh = inventory.ssh
    yield from ("-o", "StrictHostKeyChecking=yes")
    if ssh.config:
        yield from ("-F", _absolute(inventory, ssh.config))
    if ssh.known_hosts:
        yield from ("-o", f"GlobalKnownHostsFile={_absolute(inventory, ssh.known_hosts)}")
    if ssh.jump:
        yield from ("-J", ssh.jump)


def _has_host_name(inventory: Inventory, host: Host) -> bool:
    """ssh_config has a HostName for it, which then wins, together with all else it says of that name."""
    path = beside(inventory.path, inventory.ssh.config or "~/.ssh/config")
    return path.is_file() and bool(host_name(path.read_text(errors="replace"), host.name))


def _absolute(inventory: Inventory, name: str) -> str:
    return str(beside(inventory.path, name).absolute())
