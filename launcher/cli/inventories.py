"""The commands that make and show inventories: init, inventory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from launcher.cli.options import DataDir, InventoryArgument, JsonLines
from launcher.model.problem import InputError, Problem


def init(
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER", help="The fleet's name.")],
    hosts: Annotated[str, typer.Option(metavar="NAMES", help="Host names: 'gpu[01-06]'.")] = "",
    addresses: Annotated[
        str,
        typer.Option(metavar="RANGE", help="Their addresses: '10.0.0.[11-16]'; else ssh_config's HostName."),
    ] = "",
    from_ansible: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Read hosts and groups from an Ansible YAML inventory.", show_default=False
        ),
    ] = None,
    layout: Annotated[str, typer.Option(metavar="NAME", help="From configs/layouts/.")] = "current-2p1d",
    stack: Annotated[str, typer.Option(metavar="NAME", help="From configs/stacks/.")] = "current",
    hardware: Annotated[str, typer.Option(metavar="NAME", help="From configs/hardware/.")] = "h200",
    model: Annotated[str, typer.Option(metavar="NAME", help="From configs/models/.")] = "deepseek-v3.2",
    interface: Annotated[str, typer.Option(metavar="DEVICE", help="The hosts' network device.")] = "eth0",
    to: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write it there, not over another file.", show_default=False),
    ] = None,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Write a commented inventory to begin with, from host names or from Ansible's inventory."""
    from launcher.cli.output import choose
    from launcher.flows.from_ansible import read_ansible
    from launcher.flows.init import Shape, Start, init_text, named_hosts

    if bool(hosts) == bool(from_ansible):
        do = "give --hosts 'gpu[01-06]' or --from-ansible FILE"
        raise InputError(Problem("hosts come from one place, --hosts or --from-ansible", do=do))
    shape = Shape(layout=layout, stack=stack, hardware=hardware, model=model, interface=interface)
    start = (
        read_ansible(from_ansible, cluster=cluster)
        if from_ansible
        else Start(cluster, named_hosts(hosts, addresses))
    )
    text = init_text(start, shape, data_dir=data_dir)
    view = choose(json_lines=json_lines)
    if to is None:
        view.result("init", {"text": text}, text.rstrip("\n"))
        return
    try:
        with to.open("x") as file:
            file.write(text)
    except OSError as error:
        reason = (error.strerror or "not writable").lower()
        raise InputError(Problem(f"cannot write {to}: {reason}", do="name another file")) from None
    view.result("init", {"path": str(to)}, f"{to} written; next: dsv32-launch lint {to}")


def inventory(
    inventory: InventoryArgument = None,
    ansible: Annotated[
        bool, typer.Option("--ansible", help="Serve it by Ansible's dynamic-inventory protocol.")
    ] = False,
    all_hosts: Annotated[
        bool, typer.Option("--list", help="Ansible asks: groups and all variables.")
    ] = False,
    host: Annotated[str, typer.Option(metavar="NAME", help="Ansible asks: one host's variables.")] = "",
    schema: Annotated[
        bool,
        typer.Option("--schema", help="JSON Schema of inventory files, for editors; reads no inventory."),
    ] = False,
    data_dir: DataDir = None,
    json_lines: JsonLines = False,
) -> None:
    """Show the hosts and their pools; or all of it as JSON for Ansible, or the schema for editors.

    As an inventory of Ansible: an executable file with the two lines
    `#!/bin/sh` and `exec dsv32-launch inventory --ansible FILE "$@"`.
    """
    from launcher.cli.context import chosen_inventory
    from launcher.cli.output import choose
    from launcher.flows.ansible import host_variables, listing
    from launcher.load import inventory_schema, load

    indent = None if json_lines else 2
    if schema:
        typer.echo(json.dumps(inventory_schema(), indent=indent))
        return
    read = load(chosen_inventory(inventory), data_dir=data_dir).inventory
    if ansible or all_hosts or host:
        typer.echo(json.dumps(host_variables(read, host) if host else listing(read), indent=indent))
        return
    view = choose(json_lines=json_lines)
    for one in read.hosts.values():
        pools = [name for name, pool in read.pools.items() if one.name in pool.hosts]
        told = {"name": one.name, "address": one.address, "pools": pools, "source": one.source}
        view.result("host", told, f"{one.name:<16} {one.address:<16} {', '.join(pools)}".rstrip())
